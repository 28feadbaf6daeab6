// Certificates of what was released lately; each opens as the JSON that it is.

import { ask } from "./api.js";
import { $, draw, el } from "./dom.js";
import { count, day, hour } from "./words.js";

const KINDS = { kept: "good", broken: "bad" };
const WORDS = { kept: "passed", broken: "failed", "not checkable": "not tested" };
let viewed = { name: "", text: "" };

export function wireCertificates() {
  $("viewer-save").addEventListener("click", save);
}

export function showCertificates({ certificates }) {
  draw($("certificates"), certificates, () => (certificates.length ? list(certificates)
    : el("p", { class: "empty", text: "None yet. The service writes one now and then (every hour, if not set otherwise) over what was released since the last." })));
}

function list(certificates) {
  return el("ul", { class: "certificates" }, ...certificates.map((one) => el("li", {},
    el("button", { type: "button", class: "link", text: `Certificate ${one.number}`, on: { click: () => view(one.number) } }),
    el("span", { class: "span", text: `${day(one.from)} – ${hour(one.to)}` }),
    el("span", { class: "range", text: `records ${count(one.first)} to ${count(one.last)}` }),
    el("span", { class: `verdict ${KINDS[one.verdict] ?? "warn"}`, text: WORDS[one.verdict] ?? one.verdict }))));
}

async function view(number) {
  let text = "";
  let fault = "";
  try {
    text = JSON.stringify(await ask(`/v1/certificates/${number}`), null, 2);
  } catch (error) {
    fault = error.message;
  }
  viewed = { name: `certificate-${number}.json`, text };
  $("viewer-title").textContent = `Certificate ${number}`;
  $("viewer-text").textContent = text || fault;
  $("viewer-save").hidden = !text;
  if (!$("viewer").open) $("viewer").showModal();
}

function save() {
  const address = URL.createObjectURL(new Blob([viewed.text], { type: "application/json" }));
  el("a", { href: address, download: viewed.name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
