"""The members of custom resources that deploy/ uses, by kind: a manifest with any other is refused.

A table has the members of an object; `[…]` is a list of such objects, `TEXTS` a map of texts, ANY whatever there is.
Sources: the CRDs of each project at the version named beside the table.
"""

from __future__ import annotations

from typing import Any

import kubernetes_validate

TEXT, NUMBER, FLAG, TEXTS, ANY = "text", "number", "flag", "texts", "any"
LABELS = {"matchLabels": TEXTS}
PODS = "pods"
"""A PodSpec of Kubernetes, which kubernetes-validate checks."""
CONTAINERS = "containers"
"""A list of Kubernetes' containers, likewise."""

_SUPPORTED = {"name": TEXT, "version": TEXT, "autoSelect": FLAG, "priority": NUMBER}
_MODEL = {
    "modelFormat": {"name": TEXT, "version": TEXT},
    "runtime": TEXT,
    "protocolVersion": TEXT,
    "storageUri": TEXT,
    "args": [TEXT],
    "env": ANY,
    "ports": ANY,
    "resources": ANY,
}
_RAY_GROUP = {"rayStartParams": TEXTS, "template": {"metadata": ANY, "spec": PODS}}
_RAY_CLUSTER = {
    "rayVersion": TEXT,
    "enableInTreeAutoscaling": FLAG,
    "authOptions": {"mode": TEXT},
    "headGroupSpec": {**_RAY_GROUP, "serviceType": TEXT},
    "workerGroupSpecs": [
        {**_RAY_GROUP, "groupName": TEXT, "replicas": NUMBER, "minReplicas": NUMBER, "maxReplicas": NUMBER}
    ],
}

SPECS: dict[str, Any] = {
    # KEDA 2.16, keda/apis/keda/v1alpha1/scaledobject_types.go
    "keda.sh/v1alpha1 ScaledObject": {
        "scaleTargetRef": {"apiVersion": TEXT, "kind": TEXT, "name": TEXT},
        "minReplicaCount": NUMBER,
        "maxReplicaCount": NUMBER,
        "cooldownPeriod": NUMBER,
        "pollingInterval": NUMBER,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": ANY}},
        "triggers": [{"type": TEXT, "metricType": TEXT, "metadata": TEXTS}],
    },
    # prometheus-operator 0.80, pkg/apis/monitoring/v1
    "monitoring.coreos.com/v1 ServiceMonitor": {
        "jobLabel": TEXT,
        "selector": LABELS,
        "namespaceSelector": {"matchNames": [TEXT], "any": FLAG},
        "endpoints": [{"port": TEXT, "path": TEXT, "interval": TEXT, "scheme": TEXT, "tlsConfig": ANY}],
    },
    "monitoring.coreos.com/v1 PrometheusRule": {
        "groups": [
            {
                "name": TEXT,
                "interval": TEXT,
                "rules": [
                    {
                        "alert": TEXT,
                        "record": TEXT,
                        "expr": TEXT,
                        "for": TEXT,
                        "keep_firing_for": TEXT,
                        "labels": TEXTS,
                        "annotations": TEXTS,
                    }
                ],
            }
        ]
    },
    # KServe 0.21.0, class V1alpha1ServingRuntimeSpec of `kserve` on PyPI
    "serving.kserve.io/v1alpha1 ClusterServingRuntime": {
        "annotations": TEXTS,
        "labels": TEXTS,
        "supportedModelFormats": [_SUPPORTED],
        "protocolVersions": [TEXT],
        "multiModel": FLAG,
        "disabled": FLAG,
        "containers": CONTAINERS,
        "volumes": ANY,
        "nodeSelector": TEXTS,
        "tolerations": ANY,
        "affinity": ANY,
        "imagePullSecrets": ANY,
    },
    # KServe 0.21.0, classes V1beta1PredictorSpec and V1beta1ModelSpec of `kserve` on PyPI
    "serving.kserve.io/v1beta1 InferenceService": {
        "predictor": {
            "model": _MODEL,
            "minReplicas": NUMBER,
            "maxReplicas": NUMBER,
            "scaleTarget": NUMBER,
            "scaleMetric": TEXT,
            "timeout": NUMBER,
            "terminationGracePeriodSeconds": NUMBER,
            "serviceAccountName": TEXT,
            "nodeSelector": TEXTS,
            "tolerations": ANY,
            "securityContext": ANY,
        }
    },
    # KubeRay 1.5.1, ray-operator/apis/ray/v1/raycluster_types.go
    "ray.io/v1 RayCluster": _RAY_CLUSTER,
}


def problems(manifest: dict[str, Any], version: str) -> list[str]:
    """Errors of a manifest, in words; `version` is Kubernetes', for the pods in it."""
    spec = SPECS.get(f"{manifest['apiVersion']} {manifest['kind']}")
    if spec is None:
        return [f"{manifest['kind']}: no table"]
    if extra := manifest.keys() - {"apiVersion", "kind", "metadata", "spec"}:
        return [f"{manifest['kind']}: {extra}"]
    return _problems("spec", manifest["spec"], spec, version)


def is_core(manifest: dict[str, Any]) -> bool:
    return f"{manifest['apiVersion']} {manifest['kind']}" not in SPECS


def core_problems(manifest: dict[str, Any], version: str) -> list[str]:
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return [f"{manifest['kind']} {manifest['metadata']['name']}: {error}"]
    return []


def _problems(place: str, value: Any, table: Any, version: str) -> list[str]:
    if table == ANY:
        return []
    if table in (PODS, CONTAINERS):
        spec = {"containers": value} if table == CONTAINERS else value
        return [f"{place}: {one}" for one in core_problems(_pod(spec), version)]
    if isinstance(table, list):
        if not isinstance(value, list):
            return [f"{place} is not a list"]
        return [one for n, item in enumerate(value) for one in _problems(f"{place}[{n}]", item, table[0], version)]
    if isinstance(table, dict):
        if not isinstance(value, dict):
            return [f"{place} is not an object"]
        unknown = [f"{place}.{name} is not a member" for name in value.keys() - table.keys()]
        known = [
            one
            for name in value.keys() & table.keys()
            for one in _problems(f"{place}.{name}", value[name], table[name], version)
        ]
        return unknown + known
    return [] if _fits(value, table) else [f"{place}: {value!r} is not a {table}"]


def _fits(value: Any, kind: str) -> bool:
    if kind == TEXTS:
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, bool if kind == FLAG else str)


def _pod(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
