package builtin

import "github.com/heddle-live/heddle/engine/value"

var intervalContains = define(Spec{
	Name:   "interval_contains",
	Group:  Time,
	Params: []string{"start1", "end1", "start2", "end2"},
	Doc: "Whether the first interval holds all of the second: `start1 <= start2` and " +
		"`end2 <= end1`.",
	Functions: []Function{fourTimes(evalIntervalContains)},
	Examples: []Example{
		gives(true, oclock(12), oclock(15), oclock(13), oclock(14)),
		gives(true, oclock(12), oclock(13), oclock(12), oclock(13)),
		gives(false, oclock(12), oclock(14), oclock(13), oclock(15)),
	},
})

func evalIntervalContains(a []value.Value) (value.Value, error) {
	return value.OfBool(a[0].Int() <= a[2].Int() && a[3].Int() <= a[1].Int()), nil
}
