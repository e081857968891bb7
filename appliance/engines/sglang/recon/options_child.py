"""Run as a process of its own, for its imports take seconds: print the server's options as one line of JSON."""

import argparse
import json


def main() -> None:
    """[[flag, default or null, choices or null], ...], without options for help."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    table = []
    for action in parser._actions:  # argparse has no public list of its options
        flags = [flag for flag in action.option_strings if flag.startswith("--")]
        if flags and not isinstance(action, argparse._HelpAction):
            default = None if action.default in (None, argparse.SUPPRESS) else str(action.default)
            # sorted: some are made from sets, whose order is another in each process
            table.append([flags[0], default, sorted(map(str, action.choices)) if action.choices else None])
    print()
    print(json.dumps(table))


if __name__ == "__main__":
    main()
