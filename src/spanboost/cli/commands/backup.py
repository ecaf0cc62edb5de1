"""The `backup` command: write a backup of a running service or of a state folder."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from spanboost.atomic_files import atomic_write, check_writable
from spanboost.cli.admin_client import is_address, open_admin_client, suggest_address
from spanboost.cli.offline import existing_folder
from spanboost.cli.output.byte_bar import ByteBar
from spanboost.errors import UsageError
from spanboost.service.storage.backup import open_backup
from spanboost.service.storage.disk_errors import explain_disk_errors
from spanboost.service.storage.folder_check import check_folder
from spanboost.service.storage.folder_lock import lock_folder


def backup(args: Namespace) -> int:
    """Write a backup to a file."""
    check_writable(args.file)
    with (
        ByteBar(args.quiet, "writing the backup") as bar,
        explain_disk_errors(f"{args.file} was not written"),
    ):
        if is_address(args.source):
            with open_admin_client(args.source, args.certificate) as client:
                client.backup(args.file, bar.update)
        elif args.certificate is not None:
            raise UsageError("--certificate is only for the address of a running service")
        else:
            with suggest_address(args.source):
                _back_up_folder(existing_folder(args.source), Path(args.file), bar.update)
    print(f"{args.file}: {Path(args.file).stat().st_size:,} bytes")
    return 0


def _back_up_folder(folder: Path, file: Path, on_progress: Callable[[int, int], None]) -> None:
    with lock_folder(folder):
        report = check_folder(folder)
        if report.problem is not None:
            raise UsageError(report.problem_before("repair the folder before the backup"))
        opened, done = open_backup(folder, report.last), 0
        try:
            with atomic_write(file, private=True) as archive:
                for chunk in opened.chunks():
                    archive.write(chunk)
                    done += len(chunk)
                    on_progress(done, opened.size)
        finally:
            opened.close()
