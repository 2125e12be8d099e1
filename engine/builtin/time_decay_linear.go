package builtin

import "github.com/heddle-live/heddle/engine/value"

var timeDecayLinear = define(Spec{
	Name:   "time_decay_linear",
	Group:  Time,
	Params: []string{"ts", "now", "max_age"},
	Doc: "What is left of 1 at `now`, if from `ts` on it goes evenly and is gone after `max_age` " +
		"milliseconds: `1 - (now - ts) / max_age`, but never below 0.",
	Functions: []Function{{
		Params: []value.Kind{value.Timestamp, value.Timestamp, value.Int}, Result: value.Float,
		Eval: evalTimeDecayLinear,
	}},
	Examples: []Example{
		gives(0.75, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:01:00Z"), 240000),
		gives(0.0, at("2026-11-30T12:00:00Z"), at("2026-11-30T13:00:00Z"), 240000),
		fails(DivisionByZero, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:00:00Z"), 0),
	},
})

func evalTimeDecayLinear(a []value.Value) (value.Value, error) {
	used, err := ratioOfAge("time_decay_linear", a)
	if err != nil {
		return value.Value{}, err
	}
	return float(max(0, 1-used), "time_decay_linear", a)
}
