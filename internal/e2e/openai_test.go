package e2e

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openAI(t *testing.T) openai.Client {
	t.Helper()
	return openai.NewClient(option.WithBaseURL(serve(t)+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func ask(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "tiny", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func TestOpenAIChat(t *testing.T) {
	c := openAI(t)
	whole, err := c.Chat.Completions.New(t.Context(), ask(question))
	if err != nil {
		t.Fatal(err)
	}
	if have := whole.Choices[0].Message.Content; have != answer || whole.Choices[0].FinishReason != "stop" || whole.Usage.TotalTokens != 24 {
		t.Errorf("%q, %s, %d tokens", have, whole.Choices[0].FinishReason, whole.Usage.TotalTokens)
	}
	params := ask(question)
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	params.Logprobs, params.TopLogprobs, params.N = openai.Bool(true), openai.Int(2), openai.Int(2)
	stream := c.Chat.Completions.NewStreaming(t.Context(), params)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("chunk %s does not fit", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		choice := all.Choices[i]
		if choice.Message.Content != answer || choice.FinishReason != "stop" {
			t.Errorf("choice %d: %q, %s", i, choice.Message.Content, choice.FinishReason)
		}
		text := ""
		for _, token := range choice.Logprobs.Content {
			text += token.Token
			if len(token.TopLogprobs) != 2 || token.Logprob > 0 {
				t.Errorf("token %s", token.RawJSON())
			}
		}
		if text != answer {
			t.Errorf("choice %d: the tokens make %q", i, text)
		}
	}
	if u := all.Usage; u.PromptTokens != 15 || u.PromptTokensDetails.CachedTokens != 14 || u.CompletionTokens != 18 {
		t.Errorf("usage %s", u.RawJSON())
	}
}

func TestOpenAITools(t *testing.T) {
	c := openAI(t)
	params := ask("What is the weather in Paris?")
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "weather", Parameters: schema, Strict: openai.Bool(true)})}
	params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "weather"})
	stream := c.Chat.Completions.NewStreaming(t.Context(), params)
	var all openai.ChatCompletionAccumulator
	finished := 0
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("chunk %s does not fit", stream.Current().RawJSON())
		}
		if call, ok := all.JustFinishedToolCall(); ok {
			if finished++; call.Name != "weather" || !json.Valid([]byte(call.Arguments)) {
				t.Errorf("call %+v", call)
			}
		}
	}
	if err := stream.Err(); err != nil || finished != 1 || all.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%v, %d calls, %s", err, finished, all.Choices[0].FinishReason)
	}
	message := all.Choices[0].Message
	params.Messages = append(params.Messages, message.ToParam(), openai.ToolMessage("It is sunny.", message.ToolCalls[0].ID))
	params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("none")}
	if next, err := c.Chat.Completions.New(t.Context(), params); err != nil || next.Choices[0].Message.Content == "" {
		t.Errorf("the turn after a call: %v", err)
	}
}

func TestOpenAIStructuredOutput(t *testing.T) {
	c := openAI(t)
	params := ask("Where?")
	params.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "place", Schema: schema, Strict: openai.Bool(true)},
	}}
	got, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	var place struct{ City string }
	if err := json.Unmarshal([]byte(got.Choices[0].Message.Content), &place); err != nil || place.City != "Paris" {
		t.Errorf("%q, %v", got.Choices[0].Message.Content, err)
	}
}

func TestOpenAIOthers(t *testing.T) {
	c := openAI(t)
	completion, err := c.Completions.New(t.Context(), openai.CompletionNewParams{
		Model: "tiny", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon a")}, MaxTokens: openai.Int(1), Logprobs: openai.Int(1),
	})
	if err != nil || completion.Choices[0].Text != " time" || len(completion.Choices[0].Logprobs.Tokens) != 1 {
		t.Errorf("completion: %v, %v", completion, err)
	}
	vectors, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "tiny", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}})
	if err != nil || len(vectors.Data) != 2 || len(vectors.Data[1].Embedding) != 256 {
		t.Fatalf("embeddings: %v", err)
	}
	sum := 0.0
	for _, x := range vectors.Data[0].Embedding {
		sum += x * x
	}
	if math.Abs(sum-1) > 1e-4 {
		t.Errorf("an embedding has length %g", math.Sqrt(sum))
	}
	models, err := c.Models.List(t.Context())
	if err != nil || models.Data[0].ID != "tiny" {
		t.Errorf("models: %v, %v", models, err)
	}
	if model, err := c.Models.Get(t.Context(), "tiny"); err != nil || model.OwnedBy != "minfer" {
		t.Errorf("model: %v, %v", model, err)
	}
}

func TestOpenAIResponses(t *testing.T) {
	c := openAI(t)
	params := responses.ResponseNewParams{Model: "tiny", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)}}
	whole, err := c.Responses.New(t.Context(), params)
	if err != nil || whole.OutputText() != answer || whole.Status != "completed" || whole.Usage.InputTokens != 15 {
		t.Fatalf("%v, %v", whole, err)
	}
	stream := c.Responses.NewStreaming(t.Context(), params)
	text, last := "", ""
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseCompletedEvent:
			last = e.Response.OutputText()
		}
	}
	if err := stream.Err(); err != nil || text != answer || last != answer {
		t.Errorf("streamed %q and %q, %v", text, last, err)
	}
	params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("weather", schema, true)}
	params.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: param.NewOpt(responses.ToolChoiceOptionsRequired)}
	called, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	call := called.Output[0].AsFunctionCall()
	if call.Name != "weather" || !json.Valid([]byte(call.Arguments)) {
		t.Fatalf("call %s", called.Output[0].RawJSON())
	}
	result := responses.ResponseInputItemParamOfFunctionCallOutput("sunny")
	result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	input := responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name),
		result,
	}
	params = responses.ResponseNewParams{Model: "tiny", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input}, MaxOutputTokens: openai.Int(4)}
	if next, err := c.Responses.New(t.Context(), params); err != nil || next.Usage.OutputTokens > 4 {
		t.Errorf("the turn after a call: %v", err)
	}
}

func TestOpenAIErrors(t *testing.T) {
	url := serve(t)
	c := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
	long := ask(strings.Repeat("word ", 3000))
	for _, test := range []struct {
		params openai.ChatCompletionNewParams
		key    string
		status int
		code   string
	}{
		{long, key, 400, "context_length_exceeded"},
		{openai.ChatCompletionNewParams{Model: "other", Messages: long.Messages[:1]}, key, 404, "model_not_found"},
		{ask(question), "wrong", 401, "invalid_api_key"},
	} {
		_, err := c.Chat.Completions.New(t.Context(), test.params, option.WithAPIKey(test.key))
		var have *openai.Error
		if !errors.As(err, &have) || have.StatusCode != test.status || have.Code != test.code || have.Message == "" {
			t.Errorf("%v, want %d %s", err, test.status, test.code)
		}
		stream := c.Chat.Completions.NewStreaming(t.Context(), test.params, option.WithAPIKey(test.key))
		if stream.Next() || !errors.As(stream.Err(), &have) || have.StatusCode != test.status {
			t.Errorf("streamed: %v, want %d", stream.Err(), test.status)
		}
	}
}
