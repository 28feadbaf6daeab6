// The page: asks the service how it goes every other second, and hands the answer to the parts that show it.

import { ask, token } from "./api.js";
import { showCertificates, wireCertificates } from "./certificates.js";
import { $, draw, el, say } from "./dom.js";
import { showFlow } from "./flow.js";
import { showHeld } from "./held.js";
import { showLedger } from "./ledger.js";
import { showLinkage } from "./linkage.js";
import { showDelay, showNow } from "./now.js";
import { wireProfile } from "./profile.js";
import { showSettings } from "./settings.js";
import { clock, lasting } from "./words.js";

const PARTS = [showLedger, showFlow, showNow, showLinkage, showDelay, showHeld, showSettings, showCertificates];
const PACE = 2000;
const LONGEST_PAUSE = 15_000;

let timer = 0;
let looking = false;
let failures = 0;
let last = null;  // the last good answer
let asking = false;  // waits for the reader's token

async function look() {
  clearTimeout(timer);
  if (looking) return;
  looking = true;
  try {
    show(await ask("/v1/overview"));
  } catch (fault) {
    failed(fault);
  }
  looking = false;
  if (!asking && !document.hidden) timer = setTimeout(look, pause());
}

/** Wait longer after each failure, so that a service that comes back is not met by a crowd. */
const pause = () => (failures ? Math.min(LONGEST_PAUSE, 1000 * 2 ** (failures - 1)) : PACE);

function show(overview) {
  failures = 0;
  last = overview;
  askForToken(false);
  $("figures").hidden = false;
  $("figures").classList.remove("stale");
  for (const part of PARTS) part(overview);
  $("welcome").hidden = overview.counts.accepted > 0;
  say($("try"), tryThis());
  say($("facts"), `version ${overview.version} · ${up(overview.now - overview.started)}`);
  banners(ofService(overview));
  state(...(overview.ready ? overview.trouble ? ["warn", "In trouble"] : ["good", "Live"] : ["warn", "Not ready"]));
}

/** For how long the service runs, by the minute: seconds would make the line restless. */
const up = (seconds) => (seconds < 60 ? "just started" : `up ${lasting(Math.floor(seconds / 60) * 60)}`);

function ofService({ ready, trouble, reproducible }) {
  const found = [];
  if (trouble) found.push(["bad", "Trouble: ", `${trouble}.`]);
  else if (!ready) found.push(["warn", "Not ready: ", "the service is starting or stopping."]);
  if (reproducible) {
    found.push(["info", "For tests only: ", "this service was started with a seed, so its draws can be repeated. Do not publish what it releases."]);
  }
  return found;
}

function failed(fault) {
  if (fault.status === 401 || fault.status === 403) return refused(fault);
  failures += 1;
  $("figures").classList.add("stale");
  const since = last ? `The figures below are from ${clock(last.now)}. ` : "";
  const what = fault.status ? `The service answered with a fault: ${fault.message}` : "The service does not answer. ";
  banners([["bad", what, `${since}This page keeps trying.`, el("button", { type: "button", class: "quiet", text: "Try now", on: { click: look } })]]);
  return state("bad", "Not reachable");
}

function refused(fault) {
  const had = token.get();
  banners([]);
  $("figures").hidden = true;
  askForToken(true);
  say($("token-fault"), fault.status === 403 ? "This token's role may not watch. Use one with another role."
    : had ? "This token is not known here." : "");
  token.forget();
  $("forget-token").hidden = true;
  state("warn", "Needs a token");
}

function askForToken(needed) {
  if (needed && !asking) setTimeout(() => $("token").focus());
  asking = needed;
  $("asking").hidden = !needed;
  $("forget-token").hidden = !token.get();
}

function state(kind, words) {
  $("state").dataset.kind = kind;
  say($("state-words"), words);
  document.title = kind === "good" ? "QueryCloak" : `${words} – QueryCloak`;
}

function banners(found) {
  draw($("banners"), found.map(([kind, head, text]) => [kind, head, text]), () => found.map(([kind, head, text, more]) =>
    el("div", { class: `banner ${kind}` }, el("p", {}, el("b", { text: head }), text), more)));
}

function tryThis() {
  const pass = token.get() ? " \\\n  -H \"Authorization: Bearer $TOKEN\"" : "";
  return `querycloak generate --users 200 -o synthetic.ndjson\ncurl -H "Content-Type: application/x-ndjson" --data-binary @synthetic.ndjson${pass} \\\n  ${location.origin}/v1/records`;
}

function wire() {
  wireProfile();
  wireCertificates();
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = $("token").value.trim();
    if (!/^[\x21-\x7e]+$/.test(given)) return say($("token-fault"), "A token has letters, digits and a few signs, without spaces.");
    token.set(given);
    $("token").value = "";
    return look();
  });
  $("forget-token").addEventListener("click", () => { token.forget(); location.reload(); });
  $("copy-try").addEventListener("click", copyTry);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !asking) look(); });
}

async function copyTry() {
  try {
    await navigator.clipboard.writeText($("try").textContent);
    say($("copy-try"), "Copied");
  } catch {  // not allowed here: select it, so that the reader can copy
    getSelection().selectAllChildren($("try"));
  }
  setTimeout(() => say($("copy-try"), "Copy"), 2000);
}

wire();
look();
