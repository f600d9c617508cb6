package format

import "github.com/spotter-dev/spotter/eval"

// AnswerOf returns what r comes to in words, for a page that has tables of its own.
func AnswerOf(r *eval.Report) *Answer { return answerOf(r, 0, true, true) }
