// The chat page: one conversation with the server that it came from, kept in this tab.
"use strict";

const $ = (id) => document.getElementById(id);
const numbers = ["temperature", "top_p", "top_k", "min_p", "repeat_penalty", "max_tokens", "seed"];
const fields = [...numbers, "system", "key"];
const log = $("log"), input = $("input");

let turns = []; // {role, content, reasoning}
let running = null; // AbortController of the reply that arrives

// Settings stay in this browser; the key and the conversation only in this tab.
const store = (name) => (name === "key" ? sessionStorage : localStorage);
for (const name of fields) {
  $(name).value = store(name).getItem("minfer." + name) ?? "";
  $(name).addEventListener("change", () => {
    store(name).setItem("minfer." + name, $(name).value);
    if (name === "key") showModel();
  });
}

const themes = ["", "dark", "light"];
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  localStorage.setItem("minfer.theme", theme);
}
setTheme(localStorage.getItem("minfer.theme") ?? "");
$("theme").onclick = () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % themes.length]);

$("open").onclick = () => {
  $("settings").hidden = !$("settings").hidden;
  $("open").setAttribute("aria-expanded", String(!$("settings").hidden));
};
$("clear").onclick = () => {
  running?.abort();
  turns = [];
  save();
  log.replaceChildren();
  input.focus();
};

function headers() {
  const h = { "Content-Type": "application/json" };
  if ($("key").value) h.Authorization = "Bearer " + $("key").value;
  return h;
}

async function showModel() {
  try {
    const r = await fetch("v1/models", { headers: headers() });
    const body = await r.json();
    $("model").textContent = r.ok ? body.data[0].id : body.error.message;
  } catch {
    $("model").textContent = "the server does not answer";
  }
}

function save() {
  sessionStorage.setItem("minfer.turns", JSON.stringify(turns));
}

// element makes a node with a class and text; text never becomes markup.
function element(tag, name, text) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text !== undefined) e.textContent = text;
  return e;
}

// format shows fenced code as blocks and `code` in line, and everything else as it is.
function format(into, text) {
  into.replaceChildren();
  text.split(/^```/m).forEach((part, i) => {
    if (i % 2) {
      const end = part.indexOf("\n");
      into.append(element("pre", "", end < 0 ? "" : part.slice(end + 1).replace(/\n$/, "")));
      return;
    }
    part.split(/`([^`\n]+)`/).forEach((piece, j) => {
      if (piece) into.append(j % 2 ? element("code", "", piece) : document.createTextNode(piece));
    });
  });
}

// show adds a turn to the page and returns how to change it.
function show(turn) {
  const box = element("div", "turn " + turn.role), body = element("div");
  const thoughts = element("details"), thought = element("div");
  thoughts.append(element("summary", "", "Reasoning"), thought);
  const foot = element("div", "foot"), note = element("span");
  box.append(thoughts, body, foot);
  if (turn.role === "assistant") {
    const copy = element("button", "", "Copy");
    copy.type = "button";
    copy.onclick = () => navigator.clipboard?.writeText(turn.content);
    const again = element("button", "", "Again");
    again.type = "button";
    again.onclick = () => regenerate(turn, box);
    foot.append(note, copy, again);
  }
  log.append(box);
  const view = {
    box, note,
    update() {
      thoughts.hidden = !turn.reasoning;
      thought.textContent = turn.reasoning ?? "";
      if (turn.role === "assistant") format(body, turn.content);
      else body.textContent = turn.content;
    },
  };
  view.update();
  return view;
}

// regenerate drops a reply and what followed it, and asks for another.
function regenerate(turn, box) {
  if (running) return;
  const at = turns.indexOf(turn);
  if (at < 0) return;
  turns.length = at;
  while (box.nextSibling) box.nextSibling.remove();
  box.remove();
  reply();
}

// events yields the data of a stream of server-sent events.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const lines = held.split("\n");
    held = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ")) yield line.slice(6);
    }
  }
}

function request() {
  const body = { stream: true, stream_options: { include_usage: true }, messages: turns.map(({ role, content }) => ({ role, content })) };
  if ($("system").value.trim()) body.messages.unshift({ role: "system", content: $("system").value });
  for (const name of numbers) {
    if ($(name).value !== "") body[name] = Number($(name).value);
  }
  return JSON.stringify(body);
}

async function reply() {
  const body = request();
  const turn = { role: "assistant", content: "", reasoning: "" };
  turns.push(turn);
  const view = show(turn);
  running = new AbortController();
  $("send").textContent = "Stop";
  const began = performance.now();
  let first = 0, usage = null, finish = "", failed = "", drawn = 0;
  const draw = () => {
    drawn = 0;
    const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    view.update();
    if (follow) log.scrollTop = log.scrollHeight;
  };
  log.scrollTop = log.scrollHeight;
  try {
    const response = await fetch("v1/chat/completions", { method: "POST", headers: headers(), body, signal: running.signal });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const data of events(response)) {
      if (data === "[DONE]") break;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      usage = chunk.usage ?? usage;
      for (const choice of chunk.choices) {
        const delta = choice.delta;
        if ((delta.content || delta.reasoning_content) && !first) first = performance.now();
        turn.content += delta.content ?? "";
        turn.reasoning += delta.reasoning_content ?? "";
        finish = choice.finish_reason ?? finish;
      }
      drawn ||= requestAnimationFrame(draw);
    }
  } catch (e) {
    if (e.name === "AbortError") finish = "stopped";
    else failed = e.message;
  }
  draw();
  running = null;
  $("send").textContent = "Send";
  const parts = [];
  if (usage) {
    const seconds = (performance.now() - began) / 1000;
    parts.push(`${usage.completion_tokens} tokens`, `${(usage.completion_tokens / seconds).toFixed(1)} tokens/s`, `first after ${((first - began) / 1000).toFixed(2)} s`);
  }
  if (finish && finish !== "stop") parts.push(finish === "length" ? "cut at the limit" : finish);
  view.note.textContent = parts.join(" · ");
  if (failed) {
    view.note.className = "error";
    view.note.textContent = failed;
    if (!turn.content && !turn.reasoning) { // the message can be sent again
      const text = turns.slice(0, turns.indexOf(turn)).pop()?.content ?? "";
      turns.length = Math.max(0, turns.indexOf(turn) - 1);
      input.value ||= text;
      grow();
    }
  }
  save();
  input.focus();
}

function send() {
  if (running) {
    running.abort();
    return;
  }
  const text = input.value.trim();
  if (!text) return;
  const turn = { role: "user", content: text };
  turns.push(turn);
  show(turn);
  input.value = "";
  grow();
  reply();
}

function grow() {
  input.style.height = "auto";
  input.style.height = input.scrollHeight + 2 + "px";
}

$("form").onsubmit = (e) => {
  e.preventDefault();
  send();
};
input.oninput = grow;
input.onkeydown = (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    if (!running) send();
  }
};
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") running?.abort();
});

try {
  turns = JSON.parse(sessionStorage.getItem("minfer.turns") ?? "[]");
} catch {
  turns = [];
}
for (const turn of turns) show(turn);
showModel();
