//go:build !planted

package dataflow

// planted is which fault is planted: none.
const planted = PlantedNone
