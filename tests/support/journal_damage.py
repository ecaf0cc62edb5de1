"""Ways to damage the files of a journal, given by their paths in order."""


def delete_first(paths):
    paths[0].unlink()


def delete_middle(paths):
    paths[1].unlink()


def delete_last(paths):
    paths[-1].unlink()


def delete_all(paths):
    for path in paths:
        path.unlink()


def empty_first(paths):
    paths[0].write_bytes(b"")


def empty_middle(paths):
    paths[1].write_bytes(b"")


def empty_last(paths):
    paths[-1].write_bytes(b"")


def zero_header(paths):
    paths[-1].write_bytes(bytes(512) + paths[-1].read_bytes()[512:])


def zero_tail(paths):
    paths[-1].write_bytes(paths[-1].read_bytes()[:-1000] + bytes(1000))


def zero_tail_of_middle(paths):
    paths[1].write_bytes(paths[1].read_bytes()[:-1000] + bytes(1000))


def cut_middle(paths):
    paths[1].write_bytes(paths[1].read_bytes()[:-1000])


def swap(paths):
    first, second = (path.read_bytes() for path in paths[:2])
    paths[0].write_bytes(second)
    paths[1].write_bytes(first)


DAMAGES = (
    *(delete_first, delete_middle, delete_last, delete_all, empty_first, empty_middle, empty_last),
    *(zero_header, zero_tail, zero_tail_of_middle, cut_middle, swap),
)
