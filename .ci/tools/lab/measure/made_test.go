package measure

import "github.com/spotter-dev/spotter/scenarios/trace/tracetest"

var at, cents, made = tracetest.At, tracetest.Cents, tracetest.New
