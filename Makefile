# Everything runs in .venv. tools/make-environment makes it and is called every time: it is done at once if
# .venv is what requirements/ and pyproject.toml say.
.PHONY: help demo test lock nix-lock clean environment

help:
	@echo 'make demo    run the main job: a real prefill/decode pair on the CPU, checked and measured'
	@echo 'make test    run the tests'
	@echo 'make lock    pin the packages of requirements/ anew (ARGS=--upgrade: to their newest releases)'
	@echo 'make nix-lock  the same for nix/lock (ARGS=--check: only say what is stale)'
	@echo 'make clean   remove .venv and caches'
	@echo 'demo and test pass ARGS on: make test ARGS="-k plan", make demo ARGS=--keep'

environment:
	@tools/make-environment

demo: environment
	@.venv/bin/appliance demo $(ARGS)

test: environment
	@.venv/bin/python -m pytest $(ARGS)

lock:
	@tools/refresh-locks $(ARGS)

nix-lock:
	@tools/refresh-nix-lock $(ARGS)

clean:
	rm -rf .venv .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
