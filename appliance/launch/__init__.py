"""From one planned worker to one running engine process: binding, environment, exec, readiness."""
