// Package plugins stands for the packages of Flyte that its conclusions are written in: the module proxy does not serve
// flyteidl, which they import.
package plugins

import "time"

// TaskInfo has what goes along with a phase.
type TaskInfo struct{}

// PhaseInfo is a phase, and why.
type PhaseInfo struct{ Phase, Reason string }

const (
	DownstreamSystemError = "DownstreamSystemError"
	DefaultPhaseVersion   = uint32(0)
)

// PhaseInfoUndefined is the phase of whatever has none.
var PhaseInfoUndefined = PhaseInfo{Phase: "Undefined"}

func PhaseInfoQueuedWithTaskInfo(_ time.Time, _ uint32, reason string, _ *TaskInfo) PhaseInfo {
	return PhaseInfo{"Queued", reason}
}

func PhaseInfoRunning(uint32, *TaskInfo) PhaseInfo { return PhaseInfo{Phase: "Running"} }

func PhaseInfoSuccess(*TaskInfo) PhaseInfo { return PhaseInfo{Phase: "Success"} }

func PhaseInfoRetryableFailure(_, reason string, _ *TaskInfo) PhaseInfo {
	return PhaseInfo{"RetryableFailure", reason}
}
