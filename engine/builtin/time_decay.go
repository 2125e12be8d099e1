package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var timeDecay = define(Spec{
	Name:   "time_decay",
	Group:  Time,
	Params: []string{"ts", "now", "half_life"},
	Doc: "What is left of 1 at `now`, if from `ts` on a half goes every `half_life` " +
		"milliseconds: 0.5 to the power of `(now - ts) / half_life`.",
	Functions: []Function{{
		Params: []value.Kind{value.Timestamp, value.Timestamp, value.Int}, Result: value.Float,
		Eval: evalTimeDecay,
	}},
	Examples: []Example{
		gives(0.25, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:02:00Z"), 60000),
		gives(1.0, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:00:00Z"), 60000),
		fails(DivisionByZero, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:00:00Z"), 0),
	},
})

func evalTimeDecay(a []value.Value) (value.Value, error) {
	lives, err := ratioOfAge("time_decay", a)
	if err != nil {
		return value.Value{}, err
	}
	return float(math.Exp2(-lives), "time_decay", a)
}

// ratioOfAge returns how often the span a[2] fits in the time from a[0] to a[1].
func ratioOfAge(name string, a []value.Value) (float64, error) {
	age, err := difference(name, a[1], a[0], a)
	if err == nil && a[2].Int() == 0 {
		err = failure(DivisionByZero, name, a)
	}
	return float64(age.Int()) / float64(a[2].Int()), err
}
