package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minfer-go/minfer"
)

// A verb is a command within a conversation.
type verb struct {
	names []string
	args  string
	help  string
	do    func(t *talk, argument string) error
}

// verbs are the commands, in the order of /help.
func verbs() []verb {
	return []verb{
		{[]string{"/exit", "/quit"}, "", "end the conversation (also Ctrl-D)", (*talk).exit},
		{[]string{"/clear"}, "", "forget all messages; the system message stays", (*talk).clear},
		{[]string{"/regen"}, "", "give the last reply anew", (*talk).regenerate},
		{[]string{"/system"}, "[TEXT]", "show or change the system message; - removes it", (*talk).system},
		{[]string{"/save"}, "[FILE]", "save the conversation; without FILE where --session says", (*talk).save},
		{[]string{"/load"}, "[FILE]", "go on with a saved conversation", (*talk).load},
		{[]string{"/stats"}, "", "show what the conversation took", (*talk).stats},
		{[]string{"/help"}, "", "show this list", (*talk).help},
	}
}

// command splits a command from its argument. A text of several lines is none, nor one that begins with two slashes.
func command(text string) (name, argument string, ok bool) {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.Contains(text, "\n") {
		return "", "", false
	}
	name, argument, _ = strings.Cut(text, " ")
	return name, strings.TrimSpace(argument), true
}

// unescape takes one of two slashes away from the beginning of a message.
func unescape(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

func (t *talk) command(name, argument string) error {
	for _, v := range verbs() {
		for _, n := range v.names {
			if n != name {
				continue
			}
			if argument != "" && v.args == "" {
				t.out.note("%s takes no argument", name)
				return nil
			}
			return v.do(t, argument)
		}
	}
	t.out.note("%s is no command; /help lists them. A message that begins with a slash is typed with two.", name)
	return nil
}

func (t *talk) exit(string) error { return errQuit }

func (t *talk) clear(string) error {
	t.chat.Clear()
	t.out.note("[the conversation is forgotten]")
	return nil
}

func (t *talk) regenerate(string) error {
	err := t.reply(func(ctx context.Context) (*minfer.Turn, error) { return t.chat.Regenerate(ctx) })
	if errors.Is(err, minfer.ErrConversation) {
		t.out.note("%v", err)
		return nil
	}
	return err
}

func (t *talk) system(text string) error {
	switch text {
	case "":
		if t.chat.System() == "" {
			t.out.note("[there is no system message]")
		} else {
			t.out.note("%s", t.chat.System())
		}
		return nil
	case "-":
		text = ""
	}
	t.chat.SetSystem(text)
	t.out.note("[the system message is changed; the next turn evaluates the conversation anew]")
	return nil
}

// file is the argument, or that of --session.
func (t *talk) file(argument string) (string, error) {
	if argument == "" {
		argument = t.flags.session
	}
	if argument == "" {
		return "", errors.New("name a FILE")
	}
	return argument, nil
}

func (t *talk) save(argument string) error {
	path, err := t.file(argument)
	if err == nil {
		err = t.chat.Save(t.signals.ctx, path)
	}
	if err != nil {
		t.out.note("Error: %v", err)
		return nil
	}
	t.out.note("[%d message(s) and %d KV row(s) saved in %s and %s.kv]", len(t.chat.Messages()), t.chat.Held(), path, path)
	return nil
}

func (t *talk) load(argument string) error {
	path, err := t.file(argument)
	var r minfer.Resumed
	if err == nil {
		r, err = t.chat.Load(t.signals.ctx, path)
	}
	if err != nil {
		t.out.note("Error: %v", err)
		return nil
	}
	t.resumed(r)
	return nil
}

func (t *talk) stats(string) error {
	messages, forgotten := len(t.chat.Messages()), t.chat.Forgotten()
	t.out.note("messages   %d, of them %d dropped from the context", messages, forgotten)
	t.out.note("context    %d of %d tokens held", t.chat.Held(), t.model.Engine().Context())
	t.out.note("this run   %d turns, %d tokens prefilled, %d generated", t.turns, t.prefill, t.produced)
	return nil
}

func (t *talk) help(string) error {
	for _, v := range verbs() {
		names := strings.Join(v.names, " ")
		if v.args != "" {
			names += " " + v.args
		}
		t.out.note("%s", fmt.Sprintf("  %-16s %s", names, v.help))
	}
	t.out.note("A message that begins with a slash is typed with two.")
	return nil
}
