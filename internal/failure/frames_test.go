package failure_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/google/go-cmp/cmp"
)

const javaStack = `org.springframework.amqp.rabbit.support.ListenerExecutionFailedException: Listener method 'public void com.acme.orders.PlaceListener.on(com.acme.orders.Place)' threw exception
	at org.springframework.amqp.rabbit.listener.adapter.MessagingMessageListenerAdapter.invokeHandler(MessagingMessageListenerAdapter.java:286)
	at com.acme.rabbit.Retry.around(Retry.java:12)
	at java.base/java.lang.Thread.run(Thread.java:1583)
Caused by: java.lang.IllegalStateException: stock of 17 is negative
	at app//com.acme.orders.Stock.take(Stock.java:42)
	at com.acme.orders.OrderService.lambda$place$3(OrderService.java:71)
	at com.acme.orders.OrderService$$Lambda$1044/0x0000000801.accept(Unknown Source)
	at java.base/java.util.ArrayList.forEach(ArrayList.java:1596)
	at com.acme.orders.OrderService$1.run(OrderService.java:70)
	at com.acme.orders.OrderService$$SpringCGLIB$$0.place(<generated>)
	at com.acme.orders.OrderService$$EnhancerBySpringCGLIB$$1a2b3c4d.place(<generated>)
	at jdk.internal.reflect.GeneratedMethodAccessor57.invoke(Unknown Source)
	at com.acme.orders.PlaceListener.on(PlaceListener.java:20)
	Suppressed: java.io.IOException: closed
		at com.acme.orders.Never.shown(Never.java:1)
	... 12 more
`

const dotnetStack = `System.AggregateException: One or more errors occurred. (stock of 17)
 ---> System.InvalidOperationException: stock of 17
   at Acme.Orders.Stock.<TakeAsync>d__5.MoveNext() in /src/Acme.Orders/Stock.cs:line 42
--- End of stack trace from previous location ---
   at System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw()
   at Acme.Orders.PlaceHandler.<>c__DisplayClass3_0.<Handle>b__0(Line line) in C:\src\PlaceHandler.cs:line 30
   at Acme.Orders.PlaceHandler.<Handle>g__Save|3_1(Int32 n)
   at Acme.Orders.Saga` + "`" + `1.Run[T](T message)
   at Acme.Orders.PlaceHandler.Handle(Place message, IMessageHandlerContext context) in /src/PlaceHandler.cs:line 12
   --- End of inner exception stack trace ---
   at NServiceBus.Pipeline.MainPipelineExecutor.Invoke(MessageContext messageContext)
`

const pythonStack = `Traceback (most recent call last):
  File "/srv/releases/20261120/shop/stock.py", line 42, in take
    raise KeyError(sku)
KeyError: 'sku-17'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/kombu/message.py", line 12, in decode
    return self._decode()
  File "/srv/releases/20261120/shop/worker.py", line 12, in on_message
    self.handle(body)
  File "/srv/releases/20261120/shop/worker.py", line 20, in handle
    stock.take(sku)
  File "/srv/releases/20261120/shop/stock.py", line 44, in take
    raise OutOfStock(sku)
  File "<frozen importlib._bootstrap>", line 1, in _call
shop.errors.OutOfStock: sku-17
  of two lines
`

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stack string
		want        []string
	}{
		{"nothing", "", nil},
		{"no stack", "at least one of a and b: x\nis required at home (now)\nfor sure", nil},
		{
			"Java",
			javaStack,
			[]string{
				"com.acme.orders.Stock.take", "com.acme.orders.OrderService.place", "com.acme.orders.OrderService.run",
				"com.acme.orders.PlaceListener.on", "com.acme.rabbit.Retry.around",
			},
		},
		{
			"Scala and Kotlin",
			"x: y\n\tat com.acme.Stock.$anonfun$take$1(Stock.scala:12)\n\tat scala.Option.map(Option.scala:1)\n\tat com.acme.StockKt$main$1.invokeSuspend(Stock.kt:3)\n\tat com.acme.Stock.<init>(Stock.kt:3)",
			[]string{"com.acme.Stock.take", "com.acme.StockKt$main.invokeSuspend", "com.acme.Stock.<init>"},
		},
		{
			".NET",
			dotnetStack,
			[]string{
				"Acme.Orders.Stock.TakeAsync", "Acme.Orders.PlaceHandler.Handle",
				"Acme.Orders.PlaceHandler.Handle.Save", "Acme.Orders.Saga.Run",
			},
		},
		{
			".NET in German",
			"System.X: y\r\n   bei Acme.Stock.Take(Int32 n) in C:\\src\\Stock.cs:Zeile 42.\r\n   bei System.Linq.Enumerable.First()\r\n",
			[]string{"Acme.Stock.Take"},
		},
		{
			"nested classes of .NET",
			"   at Acme.Stock+Shelf+<Take>d__5.MoveNext()\n   at Acme.Stock+<>c.<Run>b__1_0()",
			[]string{"Acme.Stock+Shelf.Take", "Acme.Stock.Run"},
		},
		{"Python", pythonStack, []string{"stock.py:take", "worker.py:handle", "worker.py:on_message"}},
		{"Node", `Error: stock of 17
    at Stock.take (/app/dist/stock.js:42:13)
    at new Shelf (/app/dist/stock.js:50:1)
    at /app/dist/orders.3f2a1bc9.js:10:5
    at Object.<anonymous> (file:///app/dist/main.mjs:3:1)
    at async place [as handle] (/app/dist/orders.js:10:5)
    at async Promise.all (index 0)
    at Array.map (<anonymous>)
    at Channel.accept (/app/node_modules/amqplib/lib/channel.js:1:1)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5) {
  [cause]: Error: no row
      at Db.one (/app/dist/db.js:1:1)
}`, []string{"db.js:Db.one", "stock.js:Stock.take", "stock.js:Shelf", "orders.#.js", "main.mjs"}},
		{
			"Ruby",
			"/app/workers/stock.rb:42:in `block (2 levels) in take': stock of 17 (RuntimeError)\n\tfrom /app/workers/stock.rb:42:in `block (2 levels) in take'\n\tfrom /usr/lib/ruby/gems/3.1.0/gems/kicks-3.0.0/lib/sneakers/worker.rb:1:in `work'\n\tfrom <internal:kernel>:187:in `loop'\n\tfrom /app/workers/order.rb:7:in `rescue in work'",
			[]string{"stock.rb:take", "order.rb:work"},
		},
		{
			"Ruby 3.4",
			"/app/workers/stock.rb:42:in 'Stock#take'\n/app/workers/order.rb:7:in 'block in Order.work'",
			[]string{"stock.rb:Stock#take", "order.rb:Order.work"},
		},
		{"PHP", `RuntimeException: stock of 17 in /app/src/Stock.php:42
Stack trace:
#0 /app/src/PlaceHandler.php(20): App\Stock->take('sku-17', 1, Object(App\Place))
#1 /app/src/PlaceHandler.php(12): App\PlaceHandler->App\{closure}(Array)
#2 /app/src/functions.php(3): take_all()
#3 [internal function]: array_map(Object(Closure), Array)
#4 /app/vendor/symfony/messenger/Middleware/HandleMessageMiddleware.php(152): App\PlaceHandler->__invoke(Object(App\Place))
#5 /app/src/x.php(9): class@anonymous/app/src/x.php:12$0->run()
#6 /app/vendor/symfony/messenger/Worker.php(1): Symfony\Component\Messenger\Worker->run()
#7 {main}`, []string{
			`App\Stock->take`, `App\PlaceHandler->App\{closure}`, "functions.php:take_all",
			`App\PlaceHandler->__invoke`,
			"class->run",
		}},
		{"Go", `goroutine 17 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:24 +0x5e
main.recovered()
	/app/main.go:9 +0x1d
panic({0x4b2f60?, 0xc000012345?})
	/usr/local/go/src/runtime/panic.go:770 +0x132
github.com/acme/shop/stock.(*Shelf[...]).Take(0xc000118000, {0x4c1234, 0x6})
	/app/stock/shelf.go:42 +0x1d
github.com/acme/shop/orders.Place.func1.2()
	/app/orders/place.go:12 +0x7f
github.com/rabbitmq/amqp091-go.(*Channel).call(...)
	/go/pkg/mod/github.com/rabbitmq/amqp091-go@v1.10.0/channel.go:1
main.main.gowrap1()
	/app/main.go:5
created by main.main in goroutine 1
	/app/main.go:5 +0x1d
`, []string{"stock.(*Shelf).Take", "orders.Place", "main.main"}},
		{
			"Go with an error that has a stack",
			"no row\nmain.take\n\t/app/main.go:42\nruntime.main\n\t/usr/local/go/src/runtime/proc.go:1",
			[]string{"main.take"},
		},
		{"Elixir", `** (KeyError) key :sku not found in: %{}
    (stdlib 5.0) :maps.get(:sku, %{})
    (shop 0.1.0) lib/shop/stock.ex:42: Shop.Stock.take/2
    (elixir 1.15.7) lib/enum.ex:1693: Enum."-map/2-lists^map/1-1-"/2
    lib/shop/worker.ex:7: anonymous fn/1 in Shop.Worker.handle/2
    (stdlib 5.0) gen_server.erl:1123: :gen_server.try_dispatch/4`, []string{
			"Shop.Stock.take/2", "Shop.Worker.handle/2",
		}},
		{"Rust", `   0: rust_begin_unwind
             at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/std/src/panicking.rs:645:5
   1: core::panicking::panic_fmt::h1a2b3c4d5e6f7a8b
   2: shop::stock::take::{{closure}}::h1a2b3c4d5e6f7a8b
             at ./src/stock.rs:42:5
   3:     0x5581e5a2b3c4 - <shop::orders::Place as shop::Handler>::handle::h0011223344556677
   4: lapin::channel::Channel::run
             at /root/.cargo/registry/src/index.crates.io-6f17d22bba15001f/lapin-2.3.1/src/channel.rs:1:1
   5: main`, []string{"shop::stock::take", "<shop::orders::Place as shop::Handler>::handle"}},
		{
			"a recursion counts once",
			strings.Repeat("\tat com.acme.Tree.walk(Tree.java:7)\n", 500) + "\tat com.acme.Main.run(Main.java:1)",
			[]string{"com.acme.Tree.walk", "com.acme.Main.run"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, failure.Frames(c.stack)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFramesOfAnotherBuild checks that the frames of the same failure are equal in another build,
// in another run and on another machine.
func TestFramesOfAnotherBuild(t *testing.T) {
	t.Parallel()
	other := strings.NewReplacer(
		":42", ":57", "$3", "$9", "1044/0x0000000801", "88/0x00000008ff", "$1.run", "$2.run", "CGLIB$$0", "CGLIB$$1",
		"1a2b3c4d", "99ffee00", "Accessor57", "Accessor9", "20261120", "20261121", "d__5", "d__7", "3_0", "4_0", "b__0",
		"b__2", "line 42", "line 1",
	).Replace
	for _, stack := range []string{javaStack, dotnetStack, pythonStack} {
		if diff := cmp.Diff(failure.Frames(stack), failure.Frames(other(stack))); diff != "" || stack == other(stack) {
			t.Errorf("(-this +other):\n%s", diff)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		javaStack, dotnetStack, pythonStack, "at (", "at <", "#0 : (", "1: <", "a:in '", "(x) .ex:: ", "x.\n\t.go:",
		`File "`, "Caused by:",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stack string) {
		frames := failure.Frames(stack)
		if len(frames) > 5 {
			t.Fatal(frames)
		}
		for _, frame := range frames {
			if frame == "" || len(frame) > 200 {
				t.Fatalf("%q", frame)
			}
		}
	})
}
