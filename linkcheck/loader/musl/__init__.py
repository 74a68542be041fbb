"""The rules of musl's dynamic loader, where they differ from glibc's; imported only for a process of musl."""
