"""The renderer of the chart's tests: what Go and Helm make of the subset, and that it refuses the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.deploy.go_templates import TemplateError, Templates

ROOT: dict[str, Any] = {
    "Values": {
        "big": 6553500.0,
        "port": 8080.0,
        "on": True,
        "off": False,
        "map": {"b": 2.0, "a": "x"},
        "list": ["p", "q"],
        "text": 'a"b',
    },
    "Release": {"Name": "r"},
    "Files": {"files/f": "content"},
}


def render(text: str) -> str:
    return Templates({"t": text}).render("t", ROOT)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a {{ .Values.port }} b", "a 8080 b"),
        ("{{ .Values.big }}", "6.5535e+06"),
        ("{{ toJson .Values.big }}", "6553500"),
        ("{{ .Values.big | quote }}", '"6.5535e+06"'),
        ("{{ .Values.text | quote }}", '"a\\"b"'),
        ("x\n  {{- if .Values.on }}\n  y\n  {{- end }}\nz", "x\n  y\nz"),
        ("{{ if .Values.off }}a{{ else if .Values.on }}b{{ else }}c{{ end }}", "b"),
        ("{{ if not (or .Values.off .Values.on) }}a{{ else }}c{{ end }}", "c"),
        ("{{ range .Values.list }}<{{ . }}{{ $.Release.Name }}>{{ end }}", "<pr><qr>"),
        ("{{ range $k, $v := .Values.map }}{{ $k }}={{ $v }};{{ end }}", "a=x;b=2;"),
        ("{{ with .Values.map }}{{ .a }}{{ end }}", "x"),
        ("{{ with .Values.off }}a{{ else }}b{{ end }}", "b"),
        ('{{ define "n" }}<{{ . }}>{{ end }}{{ include "n" .Values.port | upper }}', "<8080>"),
        ('{{ $x := printf "%s-%q" .Release.Name "b" }}{{ $x }}', 'r-"b"'),
        ("{{ toYaml .Values.map | nindent 2 }}", "\n  a: x\n  b: 2"),
        ('{{ .Files.Get "files/f" }}', "content"),
        ("{{ add .Values.port 1 }}", "8081"),
        ('{{ default "d" "" | trunc 3 | trimSuffix "-" }}', "d"),
        ("{{/* nothing */}}a", "a"),
    ],
)
def test_rendered(text: str, made: str) -> None:
    assert render(text) == made


@pytest.mark.parametrize(
    "text",
    [
        "{{ .Values.port",
        "{{ if .Values.on }}a",
        "{{ end }}",
        '{{ lookup "v1" "Pod" "" "" }}',
        "{{ .Values.absent }}",
        "{{ .Values.port.more }}",
        '{{ include "absent" . }}',
        "{{ tpl .Values.text . }}",
        "{{ if .Values.on }}a{{ else with .Values.off }}b{{ end }}",
        "{{ .Values.port + 1 }}",
        "{{ (.Values.port }}",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises((TemplateError, KeyError)):
        render(text)


def test_a_map_is_not_printed_as_go_prints_it() -> None:
    with pytest.raises(TypeError, match="use toYaml"):
        render("{{ .Values.map }}")
