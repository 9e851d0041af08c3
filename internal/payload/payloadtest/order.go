package payloadtest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// OrderType is the type of Order.
const OrderType = "bench.v1.OrderPlaced"

// OrderSet returns a descriptor set with the types of Order and n further types. Some of these are
// similar.
func OrderSet(n int) []byte {
	f := &descriptorpb.FileDescriptorProto{
		Name:       proto.String("bench/v1/orders.proto"),
		Package:    proto.String("bench.v1"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"google/protobuf/timestamp.proto"},
	}
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		for i, fd := range fields {
			if fd.Number == nil {
				fd.Number = proto.Int32(int32(i + 1))
			}
		}
		m := &descriptorpb.DescriptorProto{Name: proto.String(name), Field: fields}
		f.MessageType = append(f.MessageType, m)
		return m
	}
	field := func(name string, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name:  proto.String(name),
			Type:  kind.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	of := func(name, typ string) *descriptorpb.FieldDescriptorProto {
		fd := field(name, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
		fd.TypeName = proto.String(typ)
		return fd
	}
	many := func(fd *descriptorpb.FieldDescriptorProto) *descriptorpb.FieldDescriptorProto {
		fd.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		return fd
	}
	const (
		text   = descriptorpb.FieldDescriptorProto_TYPE_STRING
		number = descriptorpb.FieldDescriptorProto_TYPE_INT64
		flag   = descriptorpb.FieldDescriptorProto_TYPE_BOOL
		double = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
	)
	message(
		"OrderPlaced", field("order_id", text), field("tenant_id", number), of("customer", ".bench.v1.Customer"),
		many(of("lines", ".bench.v1.Line")), of("placed_at", ".google.protobuf.Timestamp"),
		field("currency", text), field("total_cents", number), field("note", text), field("gift", flag),
		field("weight", double),
	)
	message(
		"Customer", field("name", text), field("email", text), field("phone", text), of("address", ".bench.v1.Address"),
	)
	message("Address", field("street", text), field("city", text), field("country", text), field("zip", text))
	message("Line", field("sku", text), field("name", text), field("quantity", number), field("cents", number))
	r := rand.New(rand.NewPCG(11, 12))
	kinds := []descriptorpb.FieldDescriptorProto_Type{text, text, text, number, flag, double}
	for i := range n {
		var fields []*descriptorpb.FieldDescriptorProto
		for k := range 3 + r.IntN(9) {
			fd := field(fmt.Sprintf("field_%d", k), kinds[r.IntN(len(kinds))])
			if r.IntN(4) == 0 {
				fd = of(fmt.Sprintf("field_%d", k), []string{
					".bench.v1.Customer", ".bench.v1.Address", ".google.protobuf.Timestamp",
				}[r.IntN(3)])
			}
			fields = append(fields, fd)
		}
		message(fmt.Sprintf("Other%d", i), fields...)
	}
	b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		panic(err) // cannot happen, because the set is always the same
	}
	return b
}

var orderWords = strings.Fields(
	"timeout gateway invoice customer address declined payment webhook delivery retry warehouse parcel shipping refund currency amount account subscription renewal notification template recipient attachment schedule",
)

// Order returns an order in the wire format. With two lines, it has about 350 bytes. With 26 lines,
// it has about 2 KB.
func Order(r *rand.Rand, number, lines int) []byte {
	text := func(b []byte, num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	integer := func(b []byte, num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
	}
	inner := func(b []byte, num protowire.Number, m []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), m)
	}
	words := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = orderWords[r.IntN(len(orderWords))]
		}
		return strings.Join(list, " ")
	}
	address := text(
		text(
			text(
				text(nil, 1, fmt.Sprintf("Hauptstr. %d", 1+r.IntN(200))), 2,
				[]string{"Berlin", "Bonn", "Hamburg"}[r.IntN(3)],
			),
			3, "DE",
		),
		4, fmt.Sprintf("%05d", r.IntN(100000)),
	)
	customer := text(
		text(text(nil, 1, "Dana "+words(1)), 2, fmt.Sprintf("dana%d@example.com", r.IntN(100000))), 3,
		fmt.Sprintf("+4930555%04d", r.IntN(10000)),
	)
	customer = inner(customer, 4, address)
	b := text(nil, 1, fmt.Sprintf("order-%08d", number))
	b = integer(b, 2, uint64(40100+r.IntN(50)))
	b = inner(b, 3, customer)
	for range lines {
		line := text(text(nil, 1, fmt.Sprintf("sku-%06d", r.IntN(1000000))), 2, words(5))
		b = inner(b, 4, integer(integer(line, 3, uint64(1+r.IntN(9))), 4, uint64(1+r.IntN(100000))))
	}
	b = inner(
		b, 5, integer(integer(nil, 1, uint64(1_790_000_000+r.IntN(1_000_000))), 2, uint64(1+r.IntN(999))*1_000_000),
	)
	b = text(b, 6, "EUR")
	b = integer(b, 7, uint64(1+r.IntN(1000000)))
	b = text(b, 8, words(6))
	b = integer(b, 9, 1)
	return protowire.AppendFixed64(
		protowire.AppendTag(b, 10, protowire.Fixed64Type), 0x3ff8000000000000+uint64(r.IntN(1<<20))<<20,
	)
}
