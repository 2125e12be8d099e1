//go:build planted

package dataflow

var planted Planted

// Plant plants a fault in all networks. With the build tag planted only, a test sees
// by it that it would find the fault. Nothing may run meanwhile.
func Plant(fault Planted) { planted = fault }
