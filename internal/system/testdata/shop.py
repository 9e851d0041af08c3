"""A shop with one task, for Celery: "work" consumes, "send" sends an order for each compression."""
import os
import sys

from celery import Celery
from kombu import Exchange, Queue

app = Celery("shop", broker=os.environ["AMQP_URL"])
app.conf.update(
    task_queues=[Queue("shop", Exchange("shop"), routing_key="shop", queue_arguments={"x-dead-letter-exchange": "dlo.dlx"})],
    task_default_queue="shop",
    task_default_exchange="shop",
    task_default_routing_key="shop",
    task_ignore_result=True,
    task_acks_late=True,
    task_acks_on_failure_or_timeout=False,  # what fails is rejected, and so dies
    worker_prefetch_multiplier=1,
)


@app.task(name="shop.charge")
def charge(order, tenant):
    if not os.path.exists(os.environ["REPAIRED"]):
        raise ValueError("order %d has no tenant" % order)
    with open(os.environ["CHARGED"], "a") as charged:
        charged.write("%d %s\n" % (order, tenant))


if sys.argv[1] == "send":
    for order, compression in enumerate(sys.argv[2:]):
        charge.apply_async((order, "acme " * 20), compression=None if compression == "none" else compression)
else:
    app.worker_main(["worker", "--pool=solo", "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=warning"])
