package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func claude(t *testing.T) anthropic.Client {
	t.Helper()
	return anthropic.NewClient(option.WithBaseURL(serve(t)), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func turn(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "tiny", MaxTokens: 64, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}}
}

func TestAnthropicMessages(t *testing.T) {
	c := claude(t)
	whole, err := c.Messages.New(t.Context(), turn(question))
	if err != nil {
		t.Fatal(err)
	}
	if whole.Content[0].Text != answer || whole.StopReason != anthropic.StopReasonEndTurn || whole.Usage.OutputTokens != 9 {
		t.Errorf("%s", whole.RawJSON())
	}
	stream := c.Messages.NewStreaming(t.Context(), turn(question))
	var all anthropic.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil || all.Content[0].Text != answer || all.StopReason != anthropic.StopReasonEndTurn || all.Usage.CacheReadInputTokens != 14 {
		t.Errorf("%v, %+v", err, all)
	}
	n, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "tiny", Messages: turn(question).Messages})
	if err != nil || n.InputTokens != 15 {
		t.Errorf("%v, %v", n, err)
	}
}

func TestAnthropicTools(t *testing.T) {
	c := claude(t)
	params := turn("What is the weather in Paris?")
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
		Properties: schema["properties"], Required: []string{"city"}, ExtraFields: map[string]any{"additionalProperties": false},
	}, "weather")}
	params.ToolChoice = anthropic.ToolChoiceParamOfTool("weather")
	stream := c.Messages.NewStreaming(t.Context(), params)
	var all anthropic.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil || all.StopReason != anthropic.StopReasonToolUse {
		t.Fatalf("%v, %s", err, all.StopReason)
	}
	use := all.Content[0].AsToolUse()
	var input struct{ City string }
	if err := json.Unmarshal(use.Input, &input); err != nil || use.Name != "weather" || input.City != "Paris" {
		t.Errorf("%s, %v", use.Input, err)
	}
	params.Messages = append(params.Messages, all.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(use.ID, "sunny", false)))
	params.ToolChoice = anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}
	if next, err := c.Messages.New(t.Context(), params); err != nil || next.Content[0].Text == "" {
		t.Errorf("the turn after a call: %v", err)
	}
}

func TestAnthropicErrors(t *testing.T) {
	c := claude(t)
	params := turn(question)
	params.Model = "other"
	_, err := c.Messages.New(t.Context(), params)
	var have *anthropic.Error
	if !errors.As(err, &have) || have.StatusCode != http.StatusNotFound || have.Type() != anthropic.ErrorTypeNotFoundError {
		t.Errorf("%v", err)
	}
	models, err := c.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || models.Data[0].ID != "tiny" {
		t.Errorf("%v", err)
	}
}
