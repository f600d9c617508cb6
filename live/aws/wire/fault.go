package wire

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A Kind classifies the errors that every AWS service may return.
type Kind uint8

// The zero Kind is every other error, including that of a request without a response.
const (
	KindOther       Kind = iota
	KindThrottled        // AWS throttles requests
	KindDenied           // IAM does not allow the request
	KindCredentials      // the credentials are not accepted
	KindExpired          // the credentials are no longer valid
)

// kinds maps error codes of AWS (AWS documentation, "Error codes for the Amazon EC2 API", and the
// common errors of the JSON services). The SDK defines the codes of throttling.
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

// KindOf returns the kind of the error of a request. err may be nil.
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

// StatusOf returns the HTTP status of the response that caused err; 0 if there was none.
func StatusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Response == nil {
		return 0
	}
	return answer.HTTPStatusCode()
}
