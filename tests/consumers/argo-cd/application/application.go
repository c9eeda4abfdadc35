// Package application stands for Argo CD's packages of that name: health checks have no parameters, and no overrides.
package application

// ResourceActionParameters are those of actions.
type ResourceActionParameters struct{}

func (*ResourceActionParameters) GetName() string  { return "" }
func (*ResourceActionParameters) GetValue() string { return "" }

// ResourceOverride is what a user has set for a kind.
type ResourceOverride struct{}
