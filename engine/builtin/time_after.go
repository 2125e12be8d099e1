package builtin

import "github.com/heddle-live/heddle/engine/value"

var timeAfter = define(Spec{
	Name:   "time_after",
	Group:  Time,
	Params: []string{"a", "b"},
	Doc:    "Whether `a` is after `b`, like `a > b`.",
	Functions: []Function{{
		Params: []value.Kind{value.Timestamp, value.Timestamp}, Result: value.Bool,
		Eval: evalTimeAfter,
	}},
	Examples: []Example{
		gives(true, at("2026-11-30T13:00:00Z"), at("2026-11-30T12:00:00Z")),
		gives(false, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:00:00Z")),
	},
})

func evalTimeAfter(a []value.Value) (value.Value, error) {
	return value.OfBool(a[0].Int() > a[1].Int()), nil
}
