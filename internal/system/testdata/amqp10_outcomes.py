# An AMQP 1.0 client. It sends two values to a queue and settles each of them with another
# outcome. It prints every error.
import sys

from amqp10 import Worker
from proton import Condition, Delivery, symbol
from proton.reactor import Container


class Settler(Worker):
    def on_message(self, event):
        delivery, body = event.delivery, event.message.body
        if body == "modified":
            delivery.local.undeliverable = True
            delivery.local.failed = True
            delivery.local.annotations = {
                symbol("x-opt-error-type"): "Acme.Stock",
                symbol("x-opt-error-message"): "stock of 17",
            }
            delivery.update(Delivery.MODIFIED)
        else:
            delivery.local.condition = Condition("acme:stock", "stock of 18")
            delivery.update(Delivery.REJECTED)
        delivery.settle()


Container(Settler(sys.argv[1], sys.argv[2], sys.argv[3], ["modified", "rejected"])).run()
