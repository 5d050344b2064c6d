package sample

import (
	"fmt"
	"math"
)

// MaxPenaltyWindow bounds Params.PenaltyWindow.
const MaxPenaltyWindow = 1 << 16

// Params says how to choose. The zero value is greedy.
type Params struct {
	Temperature float32 // 0: the best token always
	TopK        int     // keep the k best; 0: all
	TopP        float32 // keep the best that together reach this probability; 0 or 1: all
	MinP        float32 // keep those at least this fraction as likely as the best; 0: all
	Typical     float32 // keep the most typical that together reach this probability; 0 or 1: all

	RepeatPenalty    float32 // divides the logits of recent tokens (multiplies negative ones); 0 or 1: none
	FrequencyPenalty float32 // subtracted once per recent occurrence
	PresencePenalty  float32 // subtracted when there was any
	PenaltyWindow    int     // how many accepted tokens are recent; 0: no penalties

	Seed      uint64
	LogitBias map[int32]float32 // added to logits; -Inf bans a token
}

// Default returns what a chat uses unless the person or the model says otherwise.
func Default() Params {
	return Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1, PenaltyWindow: 64}
}

// Validate reports the first parameter that makes no sense, in words for the person who set it.
func (p Params) Validate() error {
	for _, f := range []struct {
		name     string
		v        float32
		min, max float32
	}{
		{"temperature", p.Temperature, 0, 100},
		{"top-p", p.TopP, 0, 1},
		{"min-p", p.MinP, 0, 1},
		{"typical", p.Typical, 0, 1},
		{"repeat penalty", p.RepeatPenalty, 0, 100},
		{"frequency penalty", p.FrequencyPenalty, -100, 100},
		{"presence penalty", p.PresencePenalty, -100, 100},
	} {
		if !(f.v >= f.min && f.v <= f.max) { // NaN too
			return fmt.Errorf("%s is %v, must be between %v and %v", f.name, f.v, f.min, f.max)
		}
	}
	if p.TopK < 0 {
		return fmt.Errorf("top-k is %d, must not be negative", p.TopK)
	}
	if p.PenaltyWindow < 0 || p.PenaltyWindow > MaxPenaltyWindow {
		return fmt.Errorf("penalty window is %d, must be between 0 and %d", p.PenaltyWindow, MaxPenaltyWindow)
	}
	for id, b := range p.LogitBias {
		if id < 0 || math.IsNaN(float64(b)) || math.IsInf(float64(b), 1) {
			return fmt.Errorf("logit bias of token %d is %v", id, b)
		}
	}
	return nil
}

func (p Params) penalises() bool {
	repeat := p.RepeatPenalty != 0 && p.RepeatPenalty != 1
	return p.PenaltyWindow > 0 && (repeat || p.FrequencyPenalty != 0 || p.PresencePenalty != 0)
}
