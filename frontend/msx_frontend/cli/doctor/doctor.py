"""Runs the checks and prints what they have found."""

import textwrap
from collections.abc import Iterator, Sequence

import click

from msx_core.start_errors import StartError
from msx_frontend.assembly.instance import listed
from msx_frontend.cli.doctor.configuration import check_configuration, check_supervisor
from msx_frontend.cli.doctor.devices import check_devices
from msx_frontend.cli.doctor.engines import check_engines
from msx_frontend.cli.doctor.inputs import check_inputs
from msx_frontend.cli.doctor.left import check_left
from msx_frontend.cli.doctor.machine import Machine
from msx_frontend.cli.doctor.overlap import check_overlap
from msx_frontend.cli.doctor.software import check_interpreters, check_mindspore, check_python, check_ray
from msx_frontend.cli.doctor.system import check_descriptors, check_disk, check_ports, check_time
from msx_frontend.cli.options import Options
from msx_frontend.config.load import GivenSettings, load_settings
from msx_frontend.config.server_config import ServerConfig
from msx_frontend.findings import Finding, Level, failed

CHECKS = (
    check_python,
    check_interpreters,
    check_mindspore,
    check_devices,
    check_ports,
    check_descriptors,
    check_disk,
    check_time,
    check_ray,
    check_inputs,
    check_overlap,
    check_engines,
    check_left,
)
WIDTH = 80
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILED: "red"}


def doctor(options: Options) -> int:
    """Check the machine for the server that the flags would start. Returns 1 if a check has failed."""
    findings = list(_findings(options))
    for finding in findings:
        _show(finding)
    return report(findings)


def report(findings: Sequence[Finding]) -> int:
    """Print the sum, and return the exit code: warnings are not failures."""
    failures, warnings = (sum(one.level is level for one in findings) for level in (Level.FAILED, Level.WARNING))
    click.echo(f"{len(findings)} checks: {failures} failed, {warnings} with a warning.")
    return 1 if failures else 0


def _findings(options: Options) -> Iterator[Finding]:
    """A wrong configuration is a finding, and the defaults are checked instead."""
    try:
        settings = load_settings(options.overrides(), options.ts_config, options.env)
        yield from check_configuration(settings)
        yield from check_supervisor(settings)
    except (StartError, OSError) as error:
        yield failed("configuration", str(error), "The checks below are those of the default settings.")
        settings = GivenSettings(ServerConfig(), [], frozenset())
    servers = listed()
    machine = Machine(settings.config, options.env, tuple(servers.running), tuple(servers.killed))
    for check in CHECKS:
        yield from check(machine)


def _show(finding: Finding) -> None:
    mark = click.style(f"{finding.level.value:<8}", fg=_COLOURS[finding.level])
    lines = _wrapped(finding.found) + (_wrapped(f"-> {finding.remedy}") if finding.remedy else [])
    click.echo(f"{mark}{finding.check:<14}{lines[0]}")
    for line in lines[1:]:
        click.echo(" " * 22 + line)


def _wrapped(text: str) -> list[str]:
    """Words are not broken: paths and commands are copied from here."""
    return textwrap.wrap(text, WIDTH - 22, break_long_words=False, break_on_hyphens=False) or [""]
