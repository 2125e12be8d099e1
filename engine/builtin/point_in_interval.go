package builtin

import "github.com/heddle-live/heddle/engine/value"

var pointInInterval = define(Spec{
	Name:   "point_in_interval",
	Group:  Time,
	Params: []string{"ts", "start", "end"},
	Doc:    "Whether `start <= ts` and `ts <= end`, like `time_between`.",
	Functions: []Function{{
		Params: []value.Kind{value.Timestamp, value.Timestamp, value.Timestamp}, Result: value.Bool,
		Eval: evalPointInInterval,
	}},
	Examples: []Example{
		gives(true, at("2026-11-30T13:00:00Z"), at("2026-11-30T12:00:00Z"),
			at("2026-11-30T14:00:00Z")),
		gives(false, at("2026-11-30T14:00:00Z"), at("2026-11-30T12:00:00Z"),
			at("2026-11-30T13:00:00Z")),
	},
})

func evalPointInInterval(a []value.Value) (value.Value, error) {
	return value.OfBool(a[1].Int() <= a[0].Int() && a[0].Int() <= a[2].Int()), nil
}
