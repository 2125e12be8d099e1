package builtin

// all is every function and operator, in the order of the reference page.
var all = []*Spec{
	add, subtract, multiply, divide, remainder,

	length, upper, lower, trim, substr, replace, concat,
	startsWith, endsWith, contains, splitPart,

	abs, absInt64, absFloat64, sign, floor, ceiling, round,
	sqrt, power, exponential, logarithm, sine, cosine, tangent,

	minVal, maxVal,

	toInt, toFloat, toString, toBytes, toHex, fromHex, timestamp,

	timeDiff, timeAdd, timeSub, timeBefore, timeAfter, timeBetween, withinLast,
	intervalsOverlap, intervalContains, intervalDuration, pointInInterval,
	timeDecay, timeDecayLinear,
	yearOf, monthOf, dayOf, weekdayOf, hourOf, minuteOf, secondOf,
}
