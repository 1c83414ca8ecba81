"""render_chart.py CHART RELEASE NAMESPACE: what Helm makes of the chart with the values on stdin, as JSON."""

import json
import sys

import helm_python as helm

chart, release, namespace = sys.argv[1:]
values = json.load(sys.stdin)
lint = helm.lint(chart)
with helm.Chart.load(chart) as loaded:
    loaded.validate_schema(values)
    made = loaded.render(values, name=release, namespace=namespace)
print(json.dumps({"manifests": made, "errors": [str(error) for error in lint["errors"]]}))
