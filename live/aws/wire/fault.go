package wire

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A Kind is the sort of a refusal that every service of AWS gives.
type Kind uint8

// The zero Kind is every other error, also that of a request without an answer.
const (
	KindOther       Kind = iota
	KindThrottled        // AWS throttles requests
	KindDenied           // IAM does not allow the request
	KindCredentials      // the credentials are not accepted
	KindExpired          // the credentials are no longer valid
)

// kinds are by the codes of AWS (AWS documentation, "Error codes for the Amazon EC2 API",
// and the common errors of the JSON services). Those of throttling are the SDK's.
var kinds = map[string]Kind{
	"UnauthorizedOperation":       KindDenied,
	"AccessDenied":                KindDenied,
	"AccessDeniedException":       KindDenied,
	"AuthFailure":                 KindCredentials,
	"InvalidClientTokenId":        KindCredentials,
	"UnrecognizedClientException": KindCredentials,
	"SignatureDoesNotMatch":       KindCredentials,
	"InvalidSignatureException":   KindCredentials,
	"MissingAuthenticationToken":  KindCredentials,
	"ExpiredToken":                KindExpired,
	"ExpiredTokenException":       KindExpired,
	"RequestExpired":              KindExpired,
}

// KindOf returns the kind of the error of a request, which may be nil.
func KindOf(err error) Kind {
	var said smithy.APIError
	if errors.As(err, &said) && kinds[said.ErrorCode()] != KindOther {
		return kinds[said.ErrorCode()]
	}
	if StatusOf(err) == http.StatusTooManyRequests ||
		retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary {
		return KindThrottled
	}
	return KindOther
}

// StatusOf returns the HTTP status of the answer that err comes from, 0 without one.
func StatusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Response == nil {
		return 0
	}
	return answer.HTTPStatusCode()
}
