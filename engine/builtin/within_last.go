package builtin

import "github.com/heddle-live/heddle/engine/value"

var withinLast = define(Spec{
	Name:   "within_last",
	Group:  Time,
	Params: []string{"ts", "now", "ms"},
	Doc:    "Whether `ts` is not after `now` and at most so many milliseconds before.",
	Functions: []Function{{
		Params: []value.Kind{value.Timestamp, value.Timestamp, value.Int}, Result: value.Bool,
		Eval: evalWithinLast,
	}},
	Examples: []Example{
		gives(true, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:01:00Z"), 60000),
		gives(false, at("2026-11-30T12:00:00Z"), at("2026-11-30T12:01:00Z"), 59999),
		gives(false, at("2026-11-30T12:01:00Z"), at("2026-11-30T12:00:00Z"), 60000),
	},
})

func evalWithinLast(a []value.Value) (value.Value, error) {
	ts, now, span := a[0].Int(), a[1].Int(), a[2].Int()
	// As an unsigned number, the age cannot overflow.
	return value.OfBool(ts <= now && span >= 0 && uint64(now)-uint64(ts) <= uint64(span)), nil
}
