package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var timeSub = define(Spec{
	Name:   "time_sub",
	Group:  Time,
	Params: []string{"ts", "ms"},
	Doc:    "The time so many milliseconds earlier, like `ts - ms`.",
	Functions: []Function{
		two(value.Timestamp, value.Int, value.Timestamp,
			func(a []value.Value) (value.Value, error) {
				v, err := difference("time_sub", a[0], a[1], a)
				return value.OfTimestamp(v.Int()), err
			}),
	},
	Examples: []Example{
		gives(at("2026-11-30T11:59:59Z"), at("2026-11-30T12:00:00Z"), 1000),
		fails(Overflow, at("2026-11-30T12:00:00Z"), math.MinInt64),
	},
})
