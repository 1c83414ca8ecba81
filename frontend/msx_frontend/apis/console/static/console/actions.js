// What can be done to one version of a model, each a call of the management API.

import { h } from "../shared/dom.js";
import { action, forbidden } from "./action.js";

export function actions(version, others, settings, told) {
  return [h("h2", {}, "Actions"), told, h("div", { class: "grid-2" },
    scale(version, told), others.length > 1 ? setDefault(version, told) : null,
    others.length > 1 ? traffic(version, others, told) : null, unregister(version, settings, told))];
}

function pathOf({ modelName, modelVersion }) {
  return `/models/${encodeURIComponent(modelName)}/${encodeURIComponent(modelVersion)}`;
}

function scale(version, told) {
  return action({
    told,
    title: "Scale",
    fields: [
      { name: "min_worker", label: "Workers, at least", type: "number", min: 0, value: String(version.minWorkers), required: true },
      { name: "max_worker", label: "Workers, at most", type: "number", min: 0, value: String(version.maxWorkers), required: true },
      { name: "synchronous", label: "Wait until they are ready", type: "checkbox", value: true },
    ],
    ask: (query) => ({ method: "PUT", path: pathOf(version), query }),
  });
}

function setDefault(version, told) {
  return action({
    told,
    title: "Default version", button: `Make ${version.modelVersion} the default`,
    off: version.default ? "It is the default version." : "",
    ask: () => ({ method: "PUT", path: `${pathOf(version)}/set-default` }),
  });
}

function traffic(version, others, told) {
  return action({
    told,
    title: "Divide the traffic", button: "Divide",
    fields: others.map((one) => ({
      name: one.modelVersion, label: `Weight of ${one.modelVersion}`, type: "number", min: 0, step: "any",
      value: String(Math.round((one.trafficShare ?? (one.default ? 1 : 0)) * 100)), required: true,
    })),
    ask: (weights) => ({
      method: "PUT", path: `/models/${encodeURIComponent(version.modelName)}/traffic`,
      json: Object.fromEntries(Object.entries(weights).map(([number, weight]) => [number, Number(weight)])),
    }),
  });
}

function unregister(version, settings, told) {
  const { modelName, modelVersion } = version;
  return action({
    told,
    title: "Unregister", danger: true, button: `Unregister ${modelName} ${modelVersion}`,
    off: forbidden(settings, "enable_model_api"),
    confirm: () => `Unregister ${modelName} ${modelVersion}? Its requests are refused from then on.`,
    ask: () => ({ method: "DELETE", path: pathOf(version) }),
  });
}
