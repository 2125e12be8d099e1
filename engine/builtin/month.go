package builtin

import "time"

var monthOf = define(Spec{
	Name:      "month",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The month, from 1 to 12.",
	Functions: timePart(func(t time.Time) int { return int(t.Month()) }),
	Examples:  []Example{gives(11, at("2026-11-30T12:34:56Z"))},
})
