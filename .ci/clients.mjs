// Asks a running server with the npm clients of OpenAI and Ollama: node clients.mjs URL. The packages openai and ollama must
// be installed where this file lies.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { Ollama } from "ollama";

const url = process.argv[2];
const question = "What is the capital of France?";
const answer = "The capital of France is Paris.";
const messages = [{ role: "user", content: question }];
const parameters = { type: "object", properties: { city: { enum: ["Paris"] } }, required: ["city"], additionalProperties: false };

const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });

const whole = await openai.chat.completions.create({ model: "tiny", temperature: 0, messages });
assert.equal(whole.choices[0].message.content, answer);
assert.equal(whole.usage.total_tokens, 24);

const runner = openai.chat.completions.stream({ model: "tiny", temperature: 0, messages, stream_options: { include_usage: true } });
let text = "";
runner.on("content", (delta) => (text += delta));
assert.equal((await runner.finalChatCompletion()).choices[0].finish_reason, "stop");
assert.equal(text, answer);
assert.equal((await runner.totalUsage()).prompt_tokens, 15);

const tools = [{ type: "function", function: { name: "weather", parameters, strict: true } }];
const calling = openai.chat.completions.stream({ model: "tiny", messages, tools, tool_choice: "required" });
const [call] = (await calling.finalMessage()).tool_calls;
assert.equal(call.function.name, "weather");
assert.equal(JSON.parse(call.function.arguments).city, "Paris");

const responses = openai.responses.stream({ model: "tiny", temperature: 0, input: question });
let streamed = "";
responses.on("response.output_text.delta", (e) => (streamed += e.delta));
assert.equal((await responses.finalResponse()).output_text, answer);
assert.equal(streamed, answer);

const embedding = await openai.embeddings.create({ model: "tiny", input: ["a", "b"] }); // in base64 by itself
assert.equal(embedding.data.length, 2);
assert.ok(Math.abs(embedding.data[0].embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-4);

assert.equal((await openai.completions.create({ model: "tiny", prompt: "Once upon a", max_tokens: 1, temperature: 0 })).choices[0].text, " time");
await assert.rejects(openai.chat.completions.create({ model: "other", messages }), (e) => e.status === 404 && e.code === "model_not_found");
await assert.rejects(
  openai.chat.completions.create({ model: "tiny", messages: [{ role: "user", content: "word ".repeat(5000) }] }),
  (e) => e.status === 400 && e.code === "context_length_exceeded",
);

// A client that stops in the middle of a stream.
const cut = await openai.chat.completions.create({ model: "tiny", stream: true, messages: [{ role: "user", content: "Tell me a story." }] });
for await (const _ of cut) break;

const ollama = new Ollama({ host: url });
assert.equal((await ollama.list()).models[0].name, "tiny:latest");
assert.ok((await ollama.show({ model: "tiny" })).details.family);
const chat = await ollama.chat({ model: "tiny", messages, options: { temperature: 0 } });
assert.equal(chat.message.content, answer);
assert.equal(chat.done_reason, "stop");
let lines = "";
for await (const part of await ollama.chat({ model: "tiny", messages, stream: true, options: { temperature: 0 } })) lines += part.message.content;
assert.equal(lines, answer);
assert.equal((await ollama.generate({ model: "tiny", prompt: question, options: { temperature: 0 } })).response, answer);
const shaped = await ollama.chat({ model: "tiny", messages, format: parameters });
assert.equal(JSON.parse(shaped.message.content).city, "Paris");
await assert.rejects(ollama.chat({ model: "other", messages }), (e) => e.status_code === 404);

console.log("the clients got what they asked for");
