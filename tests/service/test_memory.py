"""The memory plan, the memory of requests, and the growth that a model may have."""

import asyncio
import threading

import pytest
from state_folders import SPEC, new_model

from spanboost.data.schema import Column, Schema
from spanboost.data.target import NumberTarget
from spanboost.errors import UsageError
from spanboost.models.memory import CELL_BYTES, feature_bytes, fixed_bytes, replay_cells
from spanboost.models.model_spec import ModelSpec
from spanboost.service.learning.memory_pool import SMALL, MemoryPool, Reservation, TooLargeError
from spanboost.service.learning.model_budget import Growth, ModelBudget
from spanboost.service.learning.worker import BusyError, Job, Worker
from spanboost.service.limits import RequestLimits
from spanboost.service.memory import BASE_BYTES, MIB, MemoryPlan, available_memory, plan_memory
from spanboost.service.request_rows import BLOCK_CELLS, split_by_cells

LARGE = 10 * SMALL


# the plan


def test_the_default_is_half_of_the_memory():
    assert plan_memory().total == max(available_memory() // 2, 512 * MIB)


def test_a_container_limits_the_memory(tmp_path):
    own, group = tmp_path / "own", tmp_path / "system.slice" / "some.service"
    machine = available_memory(tmp_path, own)
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path, own) == machine
    (tmp_path / "memory.max").write_text("1000000\n")
    assert available_memory(tmp_path, own) == 1_000_000
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("200000\n")
    assert available_memory(tmp_path, own) == 200_000
    group.mkdir(parents=True)
    (group.parent / "memory.max").write_text("3000\n")
    own.write_text("1:cpu:/other\n0::/system.slice/some.service\n")
    assert available_memory(tmp_path, own) == 3000
    (group / "memory.max").write_text("2000\n")
    assert available_memory(tmp_path, own) == 2000


def test_a_limit_that_is_too_small_is_refused():
    assert plan_memory(512 * MIB).total == 512 * MIB
    with pytest.raises(UsageError, match=r"--max-memory must be at least 512 .*got 511"):
        plan_memory(511 * MIB)
    with pytest.raises(UsageError, match="at least 612 for this model"):
        plan_memory(512 * MIB, fixed=100 * MIB)


def test_the_shares_leave_room_for_copies():
    plan = MemoryPlan(1024 * MIB)
    parts = 2 * plan.model_bytes + 3 * plan.replay_bytes + plan.work_bytes + 2 * plan.body_bytes
    assert 0.8 * plan.total < parts + BASE_BYTES <= plan.total


# the memory of requests


def take(memory, size):
    asyncio.run(memory.grow(size))


def test_large_requests_wait_and_small_ones_do_not():
    pool = MemoryPool(LARGE)
    first, second, third = (pool.ask(5 * SMALL) for _ in range(3))
    assert [future.done() for future in (first, second, third)] == [True, False, False]
    assert pool.ask(SMALL).done()
    pool.give_back(5 * SMALL)
    assert [future.done() for future in (second, third)] == [True, False]
    second_small = pool.ask(SMALL)
    assert second_small.done()
    pool.give_back(5 * SMALL)
    assert third.done()
    assert pool.reserved == 7 * SMALL


def test_large_requests_leave_memory_for_small_ones():
    pool = MemoryPool(LARGE)
    pool.take(pool.most)
    with pytest.raises(BusyError):
        pool.take(SMALL + 1)
    pool.take(SMALL)
    with pytest.raises(TooLargeError, match="--max-memory"):
        pool.ask(pool.most + 1)


def test_a_request_that_gives_up_waiting_takes_nothing():
    pool = MemoryPool(LARGE)
    pool.take(pool.most)

    async def wait_in_vain():
        with Reservation(pool) as memory:
            async with asyncio.timeout(0.05):
                await memory.grow(4 * SMALL)

    with pytest.raises(TimeoutError):
        asyncio.run(wait_in_vain())
    pool.give_back(pool.most)
    assert pool.reserved == 0


def test_memory_that_is_granted_while_a_request_gives_up_is_returned():
    pool = MemoryPool(LARGE)
    pool.take(pool.most)

    async def give_up():
        memory = Reservation(pool)
        task = asyncio.create_task(memory.grow(4 * SMALL))
        await asyncio.sleep(0.01)
        pool.give_back(pool.most)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        memory.release()

    asyncio.run(give_up())
    assert pool.reserved == 0


def test_requests_that_need_more_memory_do_not_wait_for_each_other():
    pool = MemoryPool(LARGE)

    async def need_more(first, second):
        with Reservation(pool) as memory:
            await memory.grow(first)
            await asyncio.sleep(0.01)
            await memory.enlarge(second)
            assert memory.size == first + second
            await asyncio.sleep(0.01)

    async def many(first, second):
        async with asyncio.timeout(30):
            await asyncio.gather(*(need_more(first, second) for _ in range(20)))

    asyncio.run(many(SMALL, 6 * SMALL))
    assert pool.reserved == 0
    with pytest.raises(BusyError):
        asyncio.run(many(3 * SMALL, 3 * SMALL))
    with pytest.raises(TooLargeError):
        asyncio.run(need_more(SMALL, pool.most))
    assert pool.reserved == 0


def test_a_worker_holds_the_memory_until_the_job_is_done():
    pool, memory_of_jobs = MemoryPool(LARGE), []
    started, go_on = threading.Event(), threading.Event()

    def work(jobs):
        for job in jobs:
            job.set_result(None)  # as when a label is acknowledged before it is learned
        started.set()
        go_on.wait(30)

    worker = Worker("test", work, 100)
    for _ in range(2):
        memory = Reservation(pool)
        take(memory, SMALL)
        job = Job(1, memory)
        worker.submit(job)
        memory.release()  # the request is answered
        memory_of_jobs.append(job)
        started.wait(30)
    memory_of_jobs[1].cancel()
    assert pool.reserved == 2 * SMALL
    go_on.set()
    worker.close()
    assert pool.reserved == 0


def test_a_worker_that_fails_returns_the_memory():
    pool, go_on = MemoryPool(LARGE), threading.Event()

    def work(jobs):
        go_on.wait(30)
        raise SystemExit  # ends the thread without a traceback

    worker = Worker("test", work, 100, group_rows=1)
    for _ in range(3):
        with Reservation(pool) as memory:
            take(memory, SMALL)
            worker.submit(Job(1, memory))
    go_on.set()
    worker.close()
    assert pool.reserved == 0


# blocks


def test_rows_are_learned_in_blocks_with_a_limited_number_of_values():
    width = BLOCK_CELLS // 3
    rows = [dict.fromkeys(range(width))] * 8 + [{}] * 1000 + [dict.fromkeys(range(2 * BLOCK_CELLS))]
    bounds = list(split_by_cells(rows, 1, len(rows)))
    assert bounds == [(1, 4), (4, 7), (7, 1008), (1008, 1009)]
    assert list(split_by_cells(rows, 3, 3)) == []


# the growth of the model


def budget_for(model, features=10**9, total=1024):
    return ModelBudget(model, MemoryPlan(total * MIB), RequestLimits(features=features))


def learn_all(model, rows):
    model.learn_many(rows, [1.0] * len(rows))


def test_rows_with_too_many_new_names_are_refused():
    model, _ = new_model()
    learn_all(model, [{"a": 1.0, "b": "x"}])
    budget = budget_for(model, features=4)
    rows = {0: {"a": 2.0, "b": "x"}, 1: {"c": 1.0}, 2: {"d": 1.0, "e": 1.0}, 3: {"b": "y"}}
    reasons, growth = budget.check(rows, Growth())
    assert list(reasons) == [2]
    assert "2 new feature names" in reasons[2].reason
    assert "--max-features" in reasons[2].reason
    assert growth.features == {("", "c"), ("", "b=y")}
    reasons, _ = budget.check({7: {"c": 2.0}, 8: {"f": 1.0}}, growth)
    assert list(reasons) == [8]  # names that were accepted before count


def test_hashed_names_do_not_count():
    model, _ = new_model(ModelSpec(learner="linear", n=4, bits=8))
    learn_all(model, [{"a": 1.0}])
    rows = {0: {f"n{k}": 1.0 for k in range(1000)}}
    assert budget_for(model, features=1).check(rows, Growth())[0] == {}


def test_the_memory_for_names_is_limited():
    model, _ = new_model()
    learn_all(model, [{"a": 1.0}])
    budget = budget_for(model)
    share = MemoryPlan(1024 * MIB).model_bytes
    fits = share // feature_bytes(model) // 2
    assert budget.check({0: {f"n{k}": 1.0 for k in range(fits)}}, Growth())[0] == {}
    reasons, _ = budget.check({0: {f"n{k}": 1.0 for k in range(2 * fits)}}, Growth())
    assert "--max-memory" in reasons[0].reason
    long = {0: {"n" * (share // 16): 1.0}, 1: {"m" * (share // 4): 1.0}}
    reasons, growth = budget.check(long, Growth())
    assert list(reasons) == [1]
    for _ in range(4):
        budget.accept(growth)
    assert 0 in budget.check({0: {"x": 1.0}}, Growth())[0]


def test_every_category_takes_room_in_all_columns_of_a_table():
    model, _ = new_model()
    columns = [Column("city", True, {"Ulm": 0}), Column("job", True), Column("size", False)]
    model.schema = Schema("table", NumberTarget(None), "y", columns=columns)
    budget = budget_for(model, features=8)
    rows = {0: {"city": "Ulm", "job": "a"}, 1: {"city": "Bonn", "job": "b"}, 2: {"city": "Aue"}}
    reasons, growth = budget.check(rows, Growth())
    assert list(reasons) == [2]
    assert budget.check({5: {"job": "c"}}, growth)[0].keys() == {5}
    assert budget.check({5: {"job": "b", "size": 3.0}}, growth)[0] == {}


def test_the_rows_kept_for_replay_are_limited():
    model, _ = new_model(ModelSpec(learner="linear", n=2, replay=1, memory=100))
    narrow, wide = {"n0": 1.0}, {f"n{k}": 1.0 for k in range(1000)}
    learn_all(model, [wide])
    cells = replay_cells(model)
    assert cells >= 1000
    plan = MemoryPlan(BASE_BYTES + 10 * (cells + 2500) * CELL_BYTES)  # room for 2,500 more
    budget = ModelBudget(model, plan, RequestLimits(features=10**9))
    reasons, growth = budget.check({0: wide, 1: narrow, 2: wide, 3: wide, 4: narrow}, Growth())
    assert list(reasons) == [3]
    assert "1,000 keys" in reasons[3].reason
    assert "--max-memory" in reasons[3].reason
    budget.accept(growth)
    learn_all(model, [wide, narrow, wide, narrow])
    assert list(budget.check({0: wide, 1: narrow}, Growth())[0]) == [0]
    learn_all(model, [narrow] * 1000)  # they take the places of the wide rows
    assert budget.check({0: wide, 1: narrow}, Growth())[0] == {}


def test_estimates_of_a_model_are_bounds_on_its_growth():
    model, _ = new_model(SPEC)
    learn_all(model, [{"a": 1.0}])
    bank = model.core.state.bank
    before = sum(one.nbytes for one in bank.inputs if hasattr(one, "nbytes"))
    learn_all(model, [{f"n{k}": 1.0 for k in range(20_000)}])
    bank = model.core.state.bank
    after = sum(one.nbytes for one in bank.inputs if hasattr(one, "nbytes"))
    assert before < after < before + 20_000 * feature_bytes(model)
    assert fixed_bytes(model) < 1 << 20
