// Package client is empty in the source tree. TestAGoClient generates the package from the OpenAPI
// document, in place of this file. This file imports what generated code needs, so that go.mod
// keeps it.
package client

import (
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oapi-codegen/runtime/types"
)
