package asg

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/backend"
)

// The reasons for which something is held, for conditions and Events.
const (
	ReasonAtMin      = "GroupAtMinSize"        // a released node would be replaced
	ReasonAtMax      = "GroupAtMaxSize"        // the group may not grow
	ReasonInFlight   = "LaunchInFlight"        // another instance is on its way
	ReasonAutoscaler = "ClusterAutoscaler"     // the Cluster Autoscaler acts on the node
	ReasonEKS        = "ManagedNodeGroup"      // EKS does it, or has to
	ReasonZones      = "AvailabilityZones"     // the group would rebalance its zones
	ReasonLifecycle  = "NotInService"          // the instance is not in service
	ReasonNoGroup    = "NoGroup"               // no group of the pool
	ReasonConflict   = "GroupConflict"         // two pools claim the group
	ReasonTags       = "TagLimit"              // no room to write a launch down
	ReasonGone       = "GroupGone"             // the group does not exist any more
	ReasonBusy       = "GroupBusy"             // AWS is at work on the group
	ReasonDenied     = "AccessDenied"          // IAM does not allow it
	ReasonExpired    = "CredentialsExpired"    // the credentials are not, or no longer, accepted
	ReasonNoKeys     = "NoCredentials"         // there are no credentials
	ReasonThrottled  = "Throttled"             // AWS throttles requests
	ReasonReplaces   = "GroupReplacesNodes"    // the group would replace nodes itself
	ReasonUnread     = "GroupsUnread"          // the groups could not be read yet
	ReasonTooDear    = "MaxPrice"              // the group may buy a node that costs too much
	ReasonUnbounded  = "GroupBoundsNotAllowed" // nothing allows the bounds to be written
)

// A kind is what sort of answer an error of AWS is.
type kind uint8

const (
	kindNone      kind = iota
	kindThrottled      // it was refused for now, and changed nothing
	kindBusy           // the group is at work; it changed nothing
	kindDenied
	kindExpired
	kindGone    // the group, the node group or the instance does not exist
	kindAtMin   // termination with decrement would go below the least size
	kindRefused // refused for another reason, and changed nothing
	kindUnknown // it may or may not have been carried out
	kindFenced  // it was never sent
)

// kindOf distinguishes answers by the code that AWS documents, and the few that
// share the code ValidationError by the words of their message.
func kindOf(err error) kind {
	if err == nil {
		return kindNone
	}
	var said smithy.APIError
	if errors.As(err, new(*backend.FencedError)) {
		return kindFenced
	}
	if !errors.As(err, &said) {
		return kindUnknown
	}
	switch wire.KindOf(err) {
	case wire.KindThrottled:
		return kindThrottled
	case wire.KindDenied:
		return kindDenied
	case wire.KindCredentials, wire.KindExpired:
		return kindExpired
	}
	switch said.ErrorCode() {
	case "ScalingActivityInProgress", "ResourceContention", "ResourceInUseException", "ResourceInUse":
		return kindBusy
	case "ResourceNotFoundException":
		return kindGone
	case "InternalFailure", "InternalError", "InternalServerError", "ServiceUnavailable", "ServerException", "ServiceUnavailableException":
		return kindUnknown
	case "ValidationError":
		return kindOfValidation(said.ErrorMessage())
	}
	if said.ErrorFault() == smithy.FaultServer {
		return kindUnknown
	}
	return kindRefused
}

func kindOfValidation(message string) kind {
	message = strings.ToLower(message)
	switch {
	case strings.Contains(message, "minsize") || strings.Contains(message, "min size"):
		return kindAtMin
	case strings.Contains(message, "not found"):
		return kindGone
	}
	return kindRefused
}

// held returns what to report of a call that failed: a [backend.Held] where the user
// can do something or time will, else the error with what was being done.
func held(err error, doing string, args ...any) error {
	what := fmt.Sprintf(doing, args...)
	said := ""
	if api := (smithy.APIError)(nil); errors.As(err, &api) {
		said = api.ErrorCode() + ": " + api.ErrorMessage()
	}
	reason := map[kind]string{
		kindThrottled: ReasonThrottled, kindBusy: ReasonBusy, kindDenied: ReasonDenied, kindExpired: ReasonExpired,
		kindGone: ReasonGone, kindAtMin: ReasonAtMin,
	}[kindOf(err)]
	if reason == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return backend.Hold(reason, "%s: %s", what, said)
}

// isHeld reports whether err is held for one of these reasons.
func isHeld(err error, reasons ...string) bool {
	var h *backend.Held
	return errors.As(err, &h) && slices.Contains(reasons, h.Reason)
}

// lacksCapacity reports whether the message of a scaling activity says that the
// provider had no machine (AWS documentation, "Troubleshoot Amazon EC2 Auto
// Scaling: Insufficient capacity").
func lacksCapacity(message string) bool {
	for _, words := range []string{"do not have sufficient", "InsufficientInstanceCapacity", "InsufficientHostCapacity",
		"UnfulfillableCapacity", "no Spot capacity", "SpotMaxPriceTooLow", "capacity-not-available"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
