package sample

import "testing"

const benchVocab = 151936

// benchSampler prepares a sampler with a full history.
func benchSampler(b *testing.B, c Config) (*Sampler, []float32) {
	b.Helper()
	s, err := New(c, benchVocab)
	if err != nil {
		b.Fatal(err)
	}
	l := randomLogits(benchVocab, 1)
	for i := range int32(200) {
		s.Accept(i * 331 % benchVocab)
	}
	return s, l
}

func benchConfigs() map[string]func(*Config) {
	return map[string]func(*Config){
		"default":   func(c *Config) { *c = Default() },
		"greedy":    func(c *Config) { c.Temperature = 0 },
		"plain":     func(*Config) {},
		"top-p":     func(c *Config) { c.TopP = 0.95 },
		"min-p":     func(c *Config) { c.MinP = 0.05 },
		"typical":   func(c *Config) { c.TypicalP = 0.9 },
		"sigma":     func(c *Config) { c.TopNSigma = 1 },
		"mirostat1": func(c *Config) { c.Mirostat = 1 },
		"mirostat2": func(c *Config) { c.Mirostat = 2 },
		"everything": func(c *Config) {
			*c = Default()
			c.TypicalP, c.MinP, c.XTCProbability, c.DryMultiplier, c.DynatempRange = 0.95, 0.01, 0.5, 0.8, 0.3
			c.FrequencyPenalty, c.PresencePenalty = 0.1, 0.1
		},
	}
}

func BenchmarkSample(b *testing.B) {
	for name, set := range benchConfigs() {
		b.Run(name, func(b *testing.B) {
			c := Neutral()
			set(&c)
			s, l := benchSampler(b, c)
			for b.Loop() {
				id, err := s.Sample(l, nil)
				if err != nil {
					b.Fatal(err)
				}
				s.Accept(id)
			}
		})
	}
}
