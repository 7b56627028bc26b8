package minfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/minfer-go/minfer/chat"
)

// A saved conversation is two files: FILE holds the messages as JSON, which people may read and edit; FILE.kv holds the
// tokens and the cells that the engine computed for them. The second is used only if it fits this run and the first; the
// conversation goes on without it, evaluated anew.

// MaxHistory is the largest size of a saved history in bytes.
const MaxHistory = 64 << 20

const historyVersion = 1

// errNoCells is why a history is evaluated anew though nothing is wrong with it.
var errNoCells = errors.New("there is no file with its cells")

// history is the content of FILE.
type history struct {
	Version   int            `json:"version"`
	System    string         `json:"system,omitempty"`
	Messages  []chat.Message `json:"messages"`
	Forgotten int            `json:"forgotten,omitempty"`
	Replies   uint64         `json:"replies,omitempty"`
}

// companion is the host state in FILE.kv: what else must be the same for the cells to be of use.
type companion struct {
	History  string `json:"history"`  // SHA-256 of FILE
	Template string `json:"template"` // SHA-256 of the chat template
}

// Resumed says what Load found.
type Resumed struct {
	Messages int   // of the history
	Tokens   int   // tokens whose cells were restored; they need no evaluation
	Reason   error // why there are none
}

// cellsPath is the file of a history's cells.
func cellsPath(path string) string { return path + ".kv" }

// SaveHistory writes the messages to a file.
func (c *Conversation) SaveHistory(path string) error {
	b, err := c.history()
	if err != nil {
		return err
	}
	return replaceFile(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Save writes the messages to a file and the cells to another beside it, with ".kv" after its name.
func (c *Conversation) Save(ctx context.Context, path string) error {
	b, err := c.history()
	if err != nil {
		return err
	}
	if err := c.SaveHistory(path); err != nil {
		return err
	}
	host, err := json.Marshal(c.companion(b))
	if err != nil {
		return err
	}
	return replaceFile(cellsPath(path), func(w io.Writer) error { return c.session.Save(ctx, w, host) })
}

// history is the content of FILE, indented for people.
func (c *Conversation) history() ([]byte, error) {
	messages := c.messages
	if messages == nil {
		messages = []chat.Message{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(history{Version: historyVersion, System: c.settings.System, Messages: messages, Forgotten: c.forgotten, Replies: c.replies})
	return b.Bytes(), err
}

func (c *Conversation) companion(history []byte) companion {
	return companion{History: digest(history), Template: digest([]byte(c.model.format.Source()))}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Load replaces the conversation by a saved one, with its system message; a bare list of messages without one leaves that of
// the conversation. The cells are restored if their file fits this run, this template and
// these messages; otherwise Resumed.Reason says what does not fit, and the next turn evaluates the messages anew. A history
// that cannot be read is an error and leaves the conversation as it was.
func (c *Conversation) Load(ctx context.Context, path string) (Resumed, error) {
	b, err := readHistory(path)
	if err != nil {
		return Resumed{}, err
	}
	h, err := parseHistory(b)
	if err != nil {
		return Resumed{}, fmt.Errorf("%w: %s: %w", ErrConversation, path, err)
	}
	c.messages, c.forgotten, c.replies = h.Messages, h.Forgotten, h.Replies
	if h.System != "" || h.Version > 0 {
		c.settings.System = h.System
	}
	r := Resumed{Messages: len(h.Messages)}
	r.Tokens, r.Reason = c.loadCells(ctx, cellsPath(path), b)
	return r, nil
}

func readHistory(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxHistory+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(b) > MaxHistory {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrConversation, path, MaxHistory)
	}
	return b, nil
}

// parseHistory reads the content of FILE, or a bare list of messages. A system message at the beginning of a list is the
// conversation's.
func parseHistory(b []byte) (history, error) {
	var h history
	if trimmed := bytes.TrimSpace(b); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(b, &h.Messages); err != nil {
			return h, err
		}
	} else if err := json.Unmarshal(b, &h); err != nil {
		return h, err
	} else if h.Version != historyVersion {
		return h, fmt.Errorf("version %d of the history, this build reads %d", h.Version, historyVersion)
	} else if h.Messages == nil {
		return h, errors.New("it has no messages")
	}
	if len(h.Messages) > 0 && h.Messages[0].Role == "system" {
		h.System, h.Messages = h.Messages[0].Content.String(), h.Messages[1:]
		h.Forgotten = max(h.Forgotten-1, 0)
	}
	for i, m := range h.Messages {
		switch m.Role {
		case "user", "assistant", "tool":
		case "system":
			return h, fmt.Errorf("message %d: a system message stands only at the beginning", i)
		default:
			return h, fmt.Errorf("message %d: its role is '%s': allowed are user, assistant, tool", i, m.Role)
		}
	}
	if h.Forgotten < 0 || h.Forgotten > max(len(h.Messages)-1, 0) {
		return h, fmt.Errorf("%d of %d messages are forgotten", h.Forgotten, len(h.Messages))
	}
	return h, nil
}

// loadCells restores the cells that were saved for a history and returns how many tokens they hold. Nothing is held if
// they are of no use.
func (c *Conversation) loadCells(ctx context.Context, path string, history []byte) (int, error) {
	c.dropCells(ctx)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("%w: %s", errNoCells, path)
	} else if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	host, err := c.session.Load(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	var have companion
	if err := json.Unmarshal(host, &have); err != nil {
		c.dropCells(ctx)
		return 0, fmt.Errorf("%s: host state: %w", path, err)
	}
	switch want := c.companion(history); {
	case have.History != want.History:
		err = errors.New("the history was changed since")
	case have.Template != want.Template:
		err = errors.New("another chat template")
	}
	if err != nil {
		c.dropCells(ctx)
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return len(c.session.Tokens()), nil
}

// dropCells empties the session.
func (c *Conversation) dropCells(ctx context.Context) {
	if n := len(c.session.Tokens()); n > 0 {
		_ = c.session.Remove(ctx, 0, n) // the next prompt is compared with whatever is left
	}
}
