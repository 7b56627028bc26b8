// Package chat turns conversations into prompts and replies into messages.
//
// A [Format] is the chat form of one model: the template that its file carries (or one that the user gives), the special
// tokens that templates see, and the tokenizer. [Format.Prompt] renders a [Request] (messages, tools, documents, extra
// variables) as Python's Jinja2 does in the set-up of the transformers library, and encodes the result.
//
// # Who owns the text
//
// Only text that the template wrote may become control tokens. What comes from messages, tools and variables is plain
// text whatever it looks like, so nobody can end a turn or begin another from within a message. Apart from that the ids
// are those of the whole rendered text: plain text is encoded in one piece from one control token to the next, however
// many owners it has.
//
// # Templates
//
// A template is compiled when it is first needed: one that is broken is no hindrance to raw completion, and an error with
// its line and construct to chat. Nothing falls back to another template. A file that has none at all is spoken to in
// ChatML, and [Format.Notice] says so.
//
// # Going on
//
// [Prompt.Resume] continues tokens that a cache holds: a reply stays as it was sampled where the prompt has the same text
// there, even where encoding that text gives other ids. [Prompt.Shift] finds what to remove from the cache when a prompt
// leaves out turns in the middle.
//
// A Format is immutable and safe for concurrent use; a [Splitter] belongs to one reply.
package chat
