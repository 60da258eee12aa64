#!/usr/bin/env python3
"""The agent's socket goes away while the agent lives: it comes back, or the agent ends once it is
not needed; and an agent that ends removes no other agent's socket.

Usage: socket_test.py CRASH_JOB BACKSTAYD [unittest arguments]
"""

import os
import shutil
import signal

from process_case import ProcessCase, main, wait_for

EBUSY = 7


class Socket(ProcessCase):
    def second_agent(self):
        """Takes the name while the first agent is stopped, as one does that was quicker than its
        notice.
        """
        first = self.start_agent()
        os.kill(first.pid, signal.SIGSTOP)
        self.addCleanup(first.kill)
        self.socket.unlink()
        return first, self.start_agent()

    def test_a_removed_name_comes_back(self):
        agent = self.start_agent()
        self.run_job(2, 4, 2, "wait=1")
        self.socket.unlink()
        wait_for(self.socket.exists, "the socket to come back")
        self.must_come_back(2)
        self.assertEqual(self.agents(), [agent.pid])

    def test_a_removed_folder_comes_back(self):
        agent = self.start_agent()
        self.socket.parent.rename(self.folder / "elsewhere")
        wait_for(self.socket.exists, "the socket to come back")
        shutil.rmtree(self.folder / "elsewhere")
        self.socket.unlink()
        wait_for(self.socket.exists, "the socket to come back in the new folder")
        self.must_come_back(0)
        self.assertEqual(self.agents(), [agent.pid])

    def test_an_agent_whose_name_another_one_has_ends_and_leaves_it(self):
        first, second = self.second_agent()
        name = self.socket.stat().st_ino
        os.kill(first.pid, signal.SIGCONT)
        self.assertEqual(first.wait(timeout=60), 0, self.agent_log())
        self.assertEqual(self.socket.stat().st_ino, name)
        self.must_come_back(0)
        self.assertEqual(self.agents(), [second.pid])

    def test_it_serves_the_programs_that_it_has_and_is_named_to_others(self):
        gate = self.folder / "gate"
        first = self.start_agent()
        program = self.start_job(2, 6, 2, "wait=1", f"gate={gate}", "gate_step=3")
        wait_for((self.folder / "gate.reached").exists, "step 3")
        os.kill(first.pid, signal.SIGSTOP)
        self.addCleanup(first.kill)
        self.socket.unlink()
        second = self.start_agent()
        os.kill(first.pid, signal.SIGCONT)
        line = self.run_job(2, 2, 2).lines("init")[0]
        self.assertEqual(line["code"], EBUSY)
        self.assertIn(f"process {first.pid} on {os.uname().nodename}", line["message"])
        gate.touch()
        self.assertEqual(self.finish(program).reported("local"), 3)
        # With its last program gone the first agent ends, and the job is the second one's.
        self.assertEqual(first.wait(timeout=60), 0, self.agent_log())
        self.must_come_back(3)
        self.assertEqual(self.agents(), [second.pid])

    def test_a_name_that_cannot_be_made_again(self):
        agent = self.start_agent()
        os.kill(agent.pid, signal.SIGSTOP)
        self.socket.parent.rename(self.folder / "elsewhere")
        self.socket.parent.touch()  # no folder
        os.kill(agent.pid, signal.SIGCONT)
        self.assertEqual(agent.wait(timeout=60), 0, self.agent_log())


if __name__ == "__main__":
    main()
