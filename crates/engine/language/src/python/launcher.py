"""Runs a Pulumi program: connects the SDK to the engine, then runs the program as __main__.

Exit codes: 0, the program asked for everything it wants; 32, it failed and the engine has been told why;
anything else, it failed in some other way.
"""

import sys

# Started with -c, Python looks for modules in the working directory first. A file of the program that happens
# to have the name of a standard module must not be taken for that module by this script.
if sys.path and sys.path[0] == "":
    del sys.path[0]

import argparse
import asyncio
import concurrent.futures
import inspect
import logging
import os
import runpy
import traceback

import pulumi
import pulumi.runtime

REPORTED = 32
THREADS_PER_OPERATION = 4


def read_flags():
    flags = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("monitor", "engine", "project", "stack", "organization", "root_directory", "pwd", "dry_run"):
        flags.add_argument("--" + name)
    flags.add_argument("--parallel", type=int, default=1)
    flags.add_argument("program")
    flags.add_argument("args", nargs=argparse.REMAINDER)
    return flags.parse_args()


def load_config():
    values = pulumi.runtime.get_config_env()
    if hasattr(pulumi.runtime, "set_all_config"):
        pulumi.runtime.set_all_config(values, pulumi.runtime.get_config_secret_keys_env())
        return
    for key, value in values.items():
        pulumi.runtime.set_config(key, value)


def name_sockets():
    """Over a socket, gRPC calls the engine by the socket's path, which is no host name, and the engine refuses it."""
    import grpc

    plain = grpc.insecure_channel

    def insecure_channel(target, options=None, compression=None):
        return plain(target, [*(options or ()), ("grpc.default_authority", "localhost")], compression)

    grpc.insecure_channel = insecure_channel


def connect(flags):
    if flags.monitor.startswith("unix:"):
        name_sockets()
    settings = {
        "monitor": flags.monitor,
        "engine": flags.engine,
        "project": flags.project,
        "stack": flags.stack,
        "parallel": flags.parallel,
        "dry_run": flags.dry_run == "true",
        "organization": flags.organization,
        "root_directory": flags.root_directory,
    }
    # SDKs learned of some of these over time.
    known = inspect.signature(pulumi.runtime.Settings.__init__).parameters
    pulumi.runtime.configure(pulumi.runtime.Settings(**{k: v for k, v in settings.items() if k in known}))


def run_program(path):
    if not os.path.isdir(path):
        # As when Python runs a script: its own directory is where its modules are.
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        # Leaving by sys.exit() is a way to finish; only a failure is passed on.
        if end.code not in (None, 0):
            raise


def explain(error, directory):
    """The traceback from the first frame that belongs to the program; what is above is not its author's."""
    inside = os.path.join(os.path.abspath(directory), "")

    def is_own(frame):
        name = frame.f_code.co_filename
        return os.path.isfile(name) and os.path.abspath(name).startswith(inside)

    start = error.__traceback__
    while start is not None and not is_own(start.tb_frame):
        start = start.tb_next
    lines = traceback.format_exception(type(error), error, start or error.__traceback__)
    return "".join(lines)


def main():
    flags = read_flags()
    load_config()
    connect(flags)
    if flags.pwd:
        os.chdir(flags.pwd)
    directory = os.getcwd()
    sys.argv = [flags.program, *flags.args]

    # Requests that are under way when a program fails are never looked at again, and asyncio would complain.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    threads = concurrent.futures.ThreadPoolExecutor(max_workers=THREADS_PER_OPERATION * max(flags.parallel, 1))
    loop.set_default_executor(threads)
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: run_program(flags.program)))
        return 0
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return 1
    except Exception as error:
        pulumi.log.error("The program failed:\n" + explain(error, directory))
        return REPORTED
    finally:
        threads.shutdown(wait=True)
        loop.close()
        sys.stdout.flush()
        sys.stderr.flush()


sys.exit(main())
