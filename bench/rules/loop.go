package rules

func loopSpecs() []spec { return nil }
