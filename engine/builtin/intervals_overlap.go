package builtin

import "github.com/heddle-live/heddle/engine/value"

var intervalsOverlap = define(Spec{
	Name:   "intervals_overlap",
	Group:  Time,
	Params: []string{"start1", "end1", "start2", "end2"},
	Doc: "Whether some time is in both intervals, the ends included: `start1 <= end2` and " +
		"`start2 <= end1`.",
	Functions: []Function{fourTimes(evalIntervalsOverlap)},
	Examples: []Example{
		gives(true, oclock(12), oclock(14), oclock(13), oclock(15)),
		gives(true, oclock(12), oclock(13), oclock(13), oclock(14)),
		gives(false, oclock(12), oclock(13), oclock(14), oclock(15)),
	},
})

func evalIntervalsOverlap(a []value.Value) (value.Value, error) {
	return value.OfBool(a[0].Int() <= a[3].Int() && a[2].Int() <= a[1].Int()), nil
}
