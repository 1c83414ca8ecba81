// Requests common to the checks of several clients: those of common.py.

export const PROMPT = "Exceptions are a means of breaking";
export const TEXT = " out of the normal flow of control of a code block"; // what the small Llama says next, without sampling
export const LONG = "The lambda expression ".repeat(200);
export const PARAMETERS = {
  type: "object",
  properties: { word: { enum: ["if", "for"] } },
  required: ["word"],
  additionalProperties: false,
};
export const user = (content) => [{ role: "user", content }];
