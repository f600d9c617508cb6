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

// Reasons for holding an action, used in conditions and Events.
const (
	ReasonAtMin      = "GroupAtMinSize"        // the group would replace a released node
	ReasonAtMax      = "GroupAtMaxSize"        // the group must not grow
	ReasonInFlight   = "LaunchInFlight"        // another instance is being launched
	ReasonAutoscaler = "ClusterAutoscaler"     // the Cluster Autoscaler acts on the node
	ReasonEKS        = "ManagedNodeGroup"      // EKS performs the change, or has to
	ReasonZones      = "AvailabilityZones"     // the group would rebalance its zones
	ReasonLifecycle  = "NotInService"          // the instance is not in service
	ReasonNoGroup    = "NoGroup"               // the pool has no group
	ReasonConflict   = "GroupConflict"         // two pools claim the group
	ReasonTags       = "TagLimit"              // the group has no room for the tag of a launch
	ReasonGone       = "GroupGone"             // the group no longer exists
	ReasonBusy       = "GroupBusy"             // AWS is changing the group
	ReasonDenied     = "AccessDenied"          // IAM does not allow it
	ReasonExpired    = "CredentialsExpired"    // the credentials are not accepted, or no longer
	ReasonNoKeys     = "NoCredentials"         // there are no credentials
	ReasonThrottled  = "Throttled"             // AWS throttles requests
	ReasonReplaces   = "GroupReplacesNodes"    // the group would replace nodes itself
	ReasonUnread     = "GroupsUnread"          // the groups could not be read yet
	ReasonTooDear    = "MaxPrice"              // the group might buy a node above the maximum price
	ReasonUnbounded  = "GroupBoundsNotAllowed" // writing the bounds is not allowed
)

// A kind classifies an error of AWS.
type kind uint8

const (
	kindNone      kind = iota
	kindThrottled      // the request was refused for now, and changed nothing
	kindBusy           // the group is being changed; the request changed nothing
	kindDenied
	kindExpired
	kindGone    // the group, the node group or the instance does not exist
	kindAtMin   // termination with decrement would go below the minimum size
	kindRefused // the request was refused for another reason, and changed nothing
	kindUnknown // the request may or may not have been carried out
	kindFenced  // the request was never sent
)

// kindOf classifies errors by the code that AWS documents. The few that share the code
// ValidationError are distinguished by their message.
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

// held wraps err, which was returned while doing: in a [backend.Held] if the user or time can
// resolve it, otherwise in a plain error. A nil err is not allowed.
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

// isHeld reports whether err is held for one of the reasons.
func isHeld(err error, reasons ...string) bool {
	var h *backend.Held
	return errors.As(err, &h) && slices.Contains(reasons, h.Reason)
}

// lacksCapacity reports whether the message of a scaling activity means that the provider had no
// capacity (AWS documentation, "Troubleshoot Amazon EC2 Auto Scaling: Insufficient capacity").
func lacksCapacity(message string) bool {
	for _, words := range []string{"do not have sufficient", "InsufficientInstanceCapacity", "InsufficientHostCapacity",
		"UnfulfillableCapacity", "no Spot capacity", "SpotMaxPriceTooLow", "capacity-not-available"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
