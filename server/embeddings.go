package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"sync"

	"github.com/minfer-go/minfer/engine"
)

// embeddingRequest is the body of /v1/embeddings.
type embeddingRequest struct {
	model      string
	input      prompts
	format     string
	dimensions *int
	pooling    string
	user       string
	normalize  *bool
}

var embeddingFields = fields[embeddingRequest]{
	"model":           value(func(r *embeddingRequest) *string { return &r.model }),
	"input":           value(func(r *embeddingRequest) *prompts { return &r.input }),
	"encoding_format": value(func(r *embeddingRequest) *string { return &r.format }),
	"dimensions":      pointer(func(r *embeddingRequest) **int { return &r.dimensions }),
	"pooling":         value(func(r *embeddingRequest) *string { return &r.pooling }),
	"normalize":       pointer(func(r *embeddingRequest) **bool { return &r.normalize }),
	"user":            value(func(r *embeddingRequest) *string { return &r.user }),
}

// Values of <architecture>.pooling_type in model files.
var poolings = map[uint64]string{1: poolMean, 3: poolLast}

const (
	poolMean = "mean"
	poolLast = "last"
)

// pooling is the model's own way to make one vector of the tokens' hidden states.
func (s *Server) pooling() string {
	if n, err := s.model.File.Uint(s.model.Engine.Model().Config().Arch + ".pooling_type"); err == nil && poolings[n] != "" {
		return poolings[n]
	}
	return poolMean
}

// embeddings answers /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var q embeddingRequest
	if err := decode(s, w, r, embeddingFields, &q); err != nil {
		return err
	}
	recordOf(r.Context()).user = clip(q.user)
	prompts, err := s.checkEmbedding(&q)
	if err != nil {
		return err
	}
	vectors, u, err := s.embed(r.Context(), prompts, q.pooling == poolLast, q.normalize == nil || *q.normalize)
	if err != nil {
		return err
	}
	recordOf(r.Context()).embedded(s, u)
	type one struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	data := make([]one, len(vectors))
	for i, v := range vectors {
		data[i] = one{"embedding", i, v}
		if q.format == "base64" {
			data[i].Embedding = base64Floats(v)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"object": "list", "data": data, "model": s.model.Name, "usage": map[string]any{"prompt_tokens": u.prompt, "total_tokens": u.prompt},
	})
	return nil
}

// checkEmbedding checks a request and returns the ids of its inputs.
func (s *Server) checkEmbedding(q *embeddingRequest) ([][]int32, error) {
	if err := s.wants(q.model); err != nil {
		return nil, err
	}
	if n := len(q.input.texts); n == 0 || n > MaxInputs {
		return nil, badField("input", "%d inputs, must be 1 to %d", n, MaxInputs)
	}
	switch q.format {
	case "", "float", "base64":
	default:
		return nil, badField("encoding_format", "%q is neither float nor base64", clip(q.format))
	}
	if width := s.model.Engine.Model().Config().Width; q.dimensions != nil && *q.dimensions != width {
		return nil, badField("dimensions", "%d; the model's vectors have %d and cannot be shortened", *q.dimensions, width)
	}
	switch q.pooling {
	case "":
		q.pooling = s.pooling()
	case poolMean, poolLast:
	default:
		return nil, badField("pooling", "%q is neither mean nor last", clip(q.pooling))
	}
	all := make([][]int32, len(q.input.texts))
	for i := range all {
		if all[i] = q.input.ids[i]; all[i] == nil {
			if q.input.texts[i] == "" {
				return nil, badField("input", "input %d is empty", i)
			}
			all[i] = s.plain(q.input.texts[i])
		}
		if err := s.fits(&task{field: "input", prompt: all[i]}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// plain are the ids of a text in which nothing is a control token, after a beginning-of-sequence token if the model wants
// one.
func (s *Server) plain(text string) []int32 {
	var ids []int32
	if bos, ok := s.model.Tokens.BOS(); ok && s.model.Tokens.AddBOS() {
		ids = append(ids, bos)
	}
	return s.model.Tokens.Append(ids, text, false)
}

// embed makes a vector of each prompt: the mean of its tokens' hidden states, or the last one's, of length 1 if asked for.
// A few prompts are in the engine at a time, so that many do not fill its queue.
func (s *Server) embed(ctx context.Context, prompts [][]int32, last, unit bool) ([][]float32, usage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	vectors := make([][]float32, len(prompts))
	stats := make([]engine.Stats, len(prompts))
	places := make(chan struct{}, s.model.Engine.Sequences())
	var all sync.WaitGroup
	for i, prompt := range prompts {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			var err error
			if vectors[i], stats[i], err = s.embedOne(ctx, prompt, last, unit); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, usage{}, err
	}
	var u usage
	for _, one := range stats {
		u.prompt += one.Prompt
		u.queued, u.prefill = max(u.queued, one.Queued), u.prefill+one.Prefill
	}
	return vectors, u, nil
}

func (s *Server) embedOne(ctx context.Context, prompt []int32, last, unit bool) ([]float32, engine.Stats, error) {
	width := s.model.Engine.Model().Config().Width
	sum := make([]float64, width)
	job, err := s.model.Engine.Submit(ctx, engine.Request{
		Prompt: prompt, Sampling: s.options.Sampling,
		Hidden: func(pos int, hidden []float32) {
			if last && pos < len(prompt)-1 {
				return
			}
			for i, x := range hidden {
				sum[i] += float64(x)
			}
		},
	})
	if err != nil {
		return nil, engine.Stats{}, err
	}
	for more := true; more; {
		_, more = job.Next()
	}
	_, stats, err := job.Result()
	if err != nil {
		return nil, stats, err
	}
	scale := 0.0
	for _, x := range sum {
		scale += x * x
	}
	switch scale = math.Sqrt(scale); {
	case !unit && last:
		scale = 1
	case !unit:
		scale = float64(len(prompt))
	case scale == 0:
		scale = 1
	}
	v := make([]float32, width)
	for i, x := range sum {
		v[i] = float32(x / scale)
	}
	return v, stats, nil
}

// base64Floats are little-endian floats in base64.
func base64Floats(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
