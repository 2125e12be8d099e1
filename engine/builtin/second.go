package builtin

import "time"

var secondOf = define(Spec{
	Name:      "second",
	Group:     Time,
	Params:    []string{"ts"},
	Doc:       "The second, from 0 to 59.",
	Functions: timePart(func(t time.Time) int { return t.Second() }),
	Examples:  []Example{gives(56, at("2026-11-30T12:34:56Z"))},
})
